// Package cloudwatch implements the operations of CloudWatch and STS that the KCL and the KPL
// need to run on this server alone. PutMetricData stores metrics, which the server shows as
// Prometheus metrics. GetCallerIdentity answers with the call's account.
//
// The package takes the query protocol, awsJson1_0 and rpcv2Cbor.
//
// # Series
//
// A series is a metric of a namespace with its dimensions and its unit, in an account and a
// region. For each series the service keeps the count and the sum of all data, and the average,
// minimum and maximum of the newest datum. The series are in memory only and bounded (store.go):
// a new series replaces the least recently updated one, which is counted as dropped. The API
// cannot read them back; only Prometheus can.
//
// # Validation
//
// The service makes AWS's checks, with AWS's texts where they are known (validate.go names the
// sources). One wrong datum refuses the whole call, and no datum of it is stored.
package cloudwatch
