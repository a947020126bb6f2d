// Package clitest runs the runnel command in tests: in the test's process, as a process that can be
// killed, and in scripts.
//
// The TestMain of a package that uses it calls Main, which turns the test binary into the command.
package clitest
