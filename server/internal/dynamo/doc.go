// Package dynamo implements the part of the DynamoDB API that lease tables need, on the durable
// tables of server/internal/itemstore.
//
// The files: each operation has its own, such as op_put_item.go. members.go takes a request's
// members one by one and refuses the rest that DynamoDB knows (members_known.go), so that the
// server never ignores a parameter. attribute_value.go reads and writes attribute values.
// expr_*.go turn expressions from text (lexer, parser) into trees (condition, update, projection)
// that evaluate and change items without I/O. legacy_*.go turn the older parameters, such as
// Expected and AttributeUpdates, into the same trees. write.go runs every conditional write,
// transact_action.go those of transactions. read.go is common to Query and Scan; key_condition.go
// has key conditions. index_request.go and index_update.go have indexes.
//
// Error texts are DynamoDB's where they are known, because clients and people match on them.
package dynamo
