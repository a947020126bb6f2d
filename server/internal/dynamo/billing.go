package dynamo

// The billing modes.
const (
	provisioned = "PROVISIONED"
	onDemand    = "PAY_PER_REQUEST"
)

// billing holds a request's capacity settings. They appear in descriptions and have no other
// effect.
type billing struct {
	mode        string // empty: not given
	throughput  bool   // given
	read, write int64
}

// billing takes BillingMode and ProvisionedThroughput.
func (m *members) billing() billing {
	b := m.throughput()
	b.mode = m.enum("BillingMode", "", provisioned, onDemand)
	return b
}

// throughput takes ProvisionedThroughput.
func (m *members) throughput() billing {
	var b billing
	var units struct{ ReadCapacityUnits, WriteCapacityUnits *int64 }
	if b.throughput = m.decode("ProvisionedThroughput", "Map", &units); !b.throughput {
		return b
	}
	b.read = m.units("ReadCapacityUnits", units.ReadCapacityUnits)
	b.write = m.units("WriteCapacityUnits", units.WriteCapacityUnits)
	return b
}

func (m *members) units(name string, n *int64) int64 {
	at := m.path("ProvisionedThroughput") + "." + lowerFirst(name)
	switch {
	case n == nil:
		m.violated("Value null at '%s' failed to satisfy constraint: "+
			"Member must not be null", at)
		return 0
	case *n < 1:
		m.violated("Value '%d' at '%s' failed to satisfy constraint: "+
			"Member must have value greater than or equal to 1", *n, at)
	}
	return *n
}

// check returns the fault of the billing as a whole, for a table of that mode.
func (b billing) check(mode string) error {
	switch {
	case mode == onDemand && b.throughput:
		return invalidParameter("Neither ReadCapacityUnits nor WriteCapacityUnits can be " +
			"specified when BillingMode is PAY_PER_REQUEST")
	case b.mode == provisioned && !b.throughput:
		return invalidParameter("ReadCapacityUnits and WriteCapacityUnits must both be " +
			"specified when BillingMode is PROVISIONED")
	}
	return nil
}

// checkIndex is check for an index of a table with that mode.
func (b billing) checkIndex(mode, name string) error {
	switch {
	case mode == onDemand && b.throughput:
		return invalidParameter("ProvisionedThroughput should not be specified for index: %s "+
			"when BillingMode is PAY_PER_REQUEST", name)
	case mode == provisioned && !b.throughput:
		return invalidParameter("ProvisionedThroughput is not specified for index: %s", name)
	}
	return nil
}
