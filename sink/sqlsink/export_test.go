package sqlsink

import "database/sql"

// NewClient returns the client that a Sink makes of a database, for the tests' wrappers.
func NewClient(db *sql.DB, handler Handler) Client { return databaseSQL{db, handler} }
