//go:build !linux

package startup

func releaseBinary() error { return nil }
