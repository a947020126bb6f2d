// Package cloudwatch is as much of CloudWatch and STS as the KCL and the KPL need to run on
// this server alone: PutMetricData, whose metrics are kept and shown as Prometheus metrics, and
// GetCallerIdentity. It takes the query protocol, awsJson1_0 and rpcv2Cbor.
//
// # What is kept
//
// A series is a metric of a namespace with its dimensions and its unit, in an account and a
// region. Of each the count and the sum of everything that was sent are kept, and the average,
// minimum and maximum of the newest datum. That is in memory only, and bounded (store.go): the
// series that was not sent for longest makes room, and is counted as dropped. Nothing is read
// back by CloudWatch's API; what asks for metrics is a Prometheus.
//
// # What is checked
//
// What AWS checks, in its words where they are known (validate.go names the sources): a wrong
// datum refuses the whole call and nothing of it is kept.
package cloudwatch
