// Command conformance asks an endpoint of the Kinesis API how it behaves, and compares the
// answers with a list of facts, each with its source:
//
//	go run ./conformance --endpoint http://127.0.0.1:4567
//	go run ./conformance --endpoint aws --cost
//
// It uses nothing of runnel's: any emulator can be asked, and AWS itself. It speaks the wire by
// hand where the SDK would hide an answer, and the SDK where the SDK's own view is the fact.
//
// A fact is one sentence about behaviour, a source, and a check. Its source is part of the fact:
// what AWS documents, what its service model says, what other projects' tests saw on AWS, what
// people have quoted of AWS's answers, what an SDK's code relies on, or a guess, and then it is
// called one. An endpoint that differs from a guess may be right.
//
// In a few facts runnel differs by decision. The command finds runnel by its metrics; of it these
// facts are listed as known, with the reason, and do not fail.
//
// Streams are expensive on AWS, so facts share them: a scene makes one stream, does what is to
// be done to it once, in order, and keeps every answer; facts look at the answers. Every name
// begins with one prefix of this run, and nothing without it is touched. Streams are deleted at
// the end, also after an interrupt.
package main
