// Package proxy is a server of the Kinesis API in front of another endpoint, which it calls
// upstream: AWS, or a runnel server. It gives programs in any language runnel's order of records.
// PutRecord and PutRecords go through producer.Producer, which keeps the records of a key in order
// under throttling, failures and resharding. Every other operation is forwarded to upstream, signed
// with the proxy's own credentials.
//
// # Acknowledgement
//
// The proxy answers a put after upstream has acknowledged its records: a sequence number in a
// record's result means that the record is in the stream. The number is that of the Kinesis record
// in the stream. If that is an aggregate of several records, they share the number.
//
// # Order
//
// The proxy takes the records of a request in their order. A request that is sent after the answer
// to another request comes behind it. So all requests of an HTTP/1.1 connection are in order, since
// it carries one request at a time. Requests that overlap, on several connections or as streams of
// HTTP/2, have no order between them. Neither have two proxies.
//
// If a record of a request finds no room in the buffer, the proxy refuses it and all later records
// of the request, so that no later record overtakes a refused one.
//
// # Duplicates
//
// If a client stops waiting and sends its records again, the proxy stores them twice: it cannot
// know that the records are the same. So a client's time-out must be longer than any outage that
// the client is to survive. All other duplicates are the producer's, at most one for each attempt
// without an answer.
//
// # Trust
//
// The proxy checks no signature: every client that reaches the port acts with the proxy's
// credentials. Web pages of other machines are refused.
package proxy
