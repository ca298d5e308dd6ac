package main

import "fmt"

// profile is a configuration of fastcache that the suite is run against.
type profile struct {
	name    string
	options []string // lines of the fastcache block
}

var profiles = []profile{
	{
		// What the suite asks about that is off by default. It cannot see a
		// default lifetime as anything but a cache that makes things up, and
		// gates most of its tests on that.
		name: "conformance",
		options: []string{
			"ttl 0",
			"honor_request_cache_control",
			"store_set_cookie",
			"stale_if_error 60s",
		},
	},
	{name: "defaults"},
}

// chooseProfiles returns the profile of that name, or all for no name.
func chooseProfiles(name string) ([]profile, error) {
	if name == "" {
		return profiles, nil
	}
	for _, p := range profiles {
		if p.name == name {
			return []profile{p}, nil
		}
	}
	return nil, fmt.Errorf("-profile %s: no such profile", name)
}
