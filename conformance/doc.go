// Command conformance asks an endpoint of the Kinesis API how it behaves, and compares the
// answers with a list of facts, each with its source:
//
//	go run ./conformance --endpoint http://127.0.0.1:4567
//	go run ./conformance --endpoint aws --cost
//
// It imports nothing of runnel, so it can check any emulator, and AWS itself. It writes requests
// by hand, since the SDK hides parts of the answers; facts about the SDK use the SDK.
//
// A fact has one sentence about behaviour, a source, and a check. The source is one of six kinds:
// an AWS page, AWS's service model, a test of another project that ran against AWS, a published
// answer of AWS, SDK code that relies on the behaviour, or a guess. An endpoint that differs from
// a guess may be right.
//
// runnel differs by decision in a few facts. The command recognizes runnel by its metrics and
// lists these facts as known, with the reason; they do not fail the run.
//
// Streams are expensive on AWS, so facts share them. A scene makes one stream, runs its calls once
// and in order, and keeps every answer; the facts check these answers. All names of a run begin
// with one prefix, and the run touches nothing else. Streams are deleted at the end, also after an
// interrupt.
package main
