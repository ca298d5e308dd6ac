package main

import (
	"context"
	"encoding/json"
	"fmt"
)

var modulesCommand = command{
	name: "modules", args: "[-json]",
	summary: "list the modules of go.work",
	run:     runModules,
}

// moduleInfo is one element of the JSON list. CI builds its matrix from it.
type moduleInfo struct {
	Dir      string `json:"dir"`
	Path     string `json:"path"`
	Go       string `json:"go"`
	Released bool   `json:"released"`
}

func runModules(_ context.Context, e *env, args []string) error {
	flags := newFlags(e)
	asJSON := flags.Bool("json", false, "print a JSON array on one line")
	if args, err := parseFlags(flags, args); err != nil {
		return err
	} else if len(args) > 0 {
		return fmt.Errorf("%w: unexpected argument %q", errUsage, args[0])
	}
	mods, err := workModules(e.root)
	if err != nil {
		return err
	}
	infos := make([]moduleInfo, len(mods))
	for i, m := range mods {
		infos[i] = moduleInfo{Dir: m.dir, Path: m.path(), Go: m.goVersion(), Released: m.released()}
	}
	if *asJSON {
		return json.NewEncoder(e.stdout).Encode(infos)
	}
	for _, m := range infos {
		kind := "released"
		if !m.Released {
			kind = "internal"
		}
		if _, err := fmt.Fprintf(e.stdout, "%-20s %-8s go %-8s %s\n", m.Dir, kind, m.Go, m.Path); err != nil {
			return err
		}
	}
	return nil
}
