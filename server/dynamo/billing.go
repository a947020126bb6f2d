package dynamo

// The billing modes.
const (
	provisioned = "PROVISIONED"
	onDemand    = "PAY_PER_REQUEST"
)

// billing is what a request says about capacity. It changes nothing here but descriptions.
type billing struct {
	mode        string // empty: not given
	throughput  bool   // given
	read, write int64
}

// billing takes BillingMode and ProvisionedThroughput.
func (m *members) billing() billing {
	b := billing{mode: m.enum("BillingMode", "", provisioned, onDemand)}
	var units struct{ ReadCapacityUnits, WriteCapacityUnits *int64 }
	if b.throughput = m.decode("ProvisionedThroughput", "Map", &units); !b.throughput {
		return b
	}
	b.read = m.units("ReadCapacityUnits", units.ReadCapacityUnits)
	b.write = m.units("WriteCapacityUnits", units.WriteCapacityUnits)
	return b
}

func (m *members) units(name string, n *int64) int64 {
	switch {
	case n == nil:
		m.violated("Value null at 'provisionedThroughput.%s' failed to satisfy constraint: "+
			"Member must not be null", lowerFirst(name))
		return 0
	case *n < 1:
		m.violated("Value '%d' at 'provisionedThroughput.%s' failed to satisfy constraint: "+
			"Member must have value greater than or equal to 1", *n, lowerFirst(name))
	}
	return *n
}

// check returns what is wrong with the billing as a whole, for a table of that mode.
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
