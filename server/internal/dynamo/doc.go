// Package dynamo answers the part of the DynamoDB API that lease tables need, on the durable
// tables of server/internal/itemstore.
//
// Where is what: an operation op_put_item.go and so on; a request's members are taken one by
// one by members.go, so that none that DynamoDB knows (members_known.go) is ignored; attribute
// values on the wire in attribute_value.go; expressions in expr_*.go, from text (lexer, parser)
// to trees that decide and change items (condition, update, projection) without any I/O; the
// older parameters Expected, AttributeUpdates and their like, made into the same trees, in
// legacy_*.go; the way of every conditional write in write.go, and of a transaction's in
// transact_action.go; what Query and Scan have in common in read.go, and key conditions in
// key_condition.go; indexes in index_request.go and index_update.go.
//
// Error texts are DynamoDB's where they are known, because clients and people match on them.
package dynamo
