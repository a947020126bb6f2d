// Package rolluptest is a suite of tests for a rollup.RowStore. It runs a fleet of workers, too.
package rolluptest
