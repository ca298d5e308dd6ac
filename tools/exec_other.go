//go:build !unix

package main

import "os/exec"

func ownGroup(*exec.Cmd) {}

func interruptGroup(cmd *exec.Cmd) error { return cmd.Process.Kill() }

func killGroup(*exec.Cmd) {}
