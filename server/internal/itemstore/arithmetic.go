package itemstore

import (
	"math/big"
	"strconv"
	"strings"
)

// Add returns the exact sum, or an ErrNumber value if the sum is not a Number.
func (n Number) Add(other Number) (Number, error) {
	if a, ok := n.small(); ok {
		if b, ok := other.small(); ok {
			sum := a + b // below 2·10^18 in magnitude
			text := strconv.FormatInt(max(sum, -sum), 10)
			return newNumber(sum < 0, text, len(text))
		}
	}
	// Both as integers in units of the smaller one's last digit: below 300 digits each.
	unit := min(n.lowest(), other.lowest())
	sum := new(big.Int).Add(n.scaled(unit), other.scaled(unit))
	text := new(big.Int).Abs(sum).String()
	return newNumber(sum.Sign() < 0, text, len(text)+unit)
}

// Sub returns the exact difference. Errors: those of Add.
func (n Number) Sub(other Number) (Number, error) {
	if other.digits != "" {
		other.neg = !other.neg
	}
	return n.Add(other)
}

// small returns the number as an int64 if it is an integer of up to 18 digits.
func (n Number) small() (int64, bool) {
	if int(n.exp) < len(n.digits) || n.exp > 18 {
		return 0, false
	}
	var value int64
	for i := range int(n.exp) {
		value *= 10
		if i < len(n.digits) {
			value += int64(n.digits[i] - '0')
		}
	}
	if n.neg {
		value = -value
	}
	return value, true
}

// lowest returns the power of ten of the last digit.
func (n Number) lowest() int { return int(n.exp) - len(n.digits) }

// scaled returns the number in units of 10^unit, which is at most lowest().
func (n Number) scaled(unit int) *big.Int {
	value := new(big.Int)
	if n.digits != "" {
		value.SetString(n.digits+strings.Repeat("0", n.lowest()-unit), 10)
	}
	if n.neg {
		value.Neg(value)
	}
	return value
}
