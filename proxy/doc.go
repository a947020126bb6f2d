// Package proxy is a front door to Kinesis for programs in any language: a server of the
// Kinesis API whose PutRecord and PutRecords go through producer.Producer, so that records of a
// key stay in order under throttling, failures and resharding. Every other operation is passed
// through to the endpoint behind, signed with the proxy's own credentials.
//
// # Acknowledgement
//
// A put is answered when the stream behind has acknowledged its records: what was answered with
// a sequence number is in the stream. The number is that of the Kinesis record that holds the
// caller's; where several go in one aggregate they share it.
//
// # Order
//
// The records of a request are taken in their order, and a request that is sent after the answer
// of another one is behind it. So a connection of HTTP/1.1, which carries one request at a time,
// is in order as a whole. Requests that overlap, on several connections or as streams of
// HTTP/2, have no order between them. Neither have two proxies.
//
// Once a record of a request finds no room, no later one of the request is taken: what is
// refused is never in front of what was taken.
//
// # Doubles
//
// A client that stops waiting and sends again has put a new record: the proxy cannot know. A
// client's time-out must therefore be longer than an outage that it is to sit out. Beyond that
// the doubles are the producer's: at most one for each attempt without an answer.
//
// # Trust
//
// Nobody's signature is looked at: whoever reaches the port acts with the proxy's credentials.
// Pages of a browser that are not of this machine are refused.
package proxy
