// Package fanout has the registered consumer of enhanced fan-out: its name or ARN, how it is found
// or registered, and its calls of SubscribeToShard. Package pages reads the events.
package fanout
