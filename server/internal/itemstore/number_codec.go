package itemstore

// The ordered form of a number: its bytes compare as the numbers do, and it needs no length.
//
//	0x02                                  zero
//	0x03, exponent, digits…, 0x00         positive
//	0x01, the complement of the above     negative
//
// The exponent is exp - minExp, in one byte. Each digit byte holds two digits a and b as 1 + 10a
// + b, so that all are above the closing 0; b is 0 if the count of digits is odd.
const (
	signNegative byte = 1
	signZero     byte = 2
	signPositive byte = 3
)

func appendNumber(dst []byte, n Number) []byte {
	if n.digits == "" {
		return append(dst, signZero)
	}
	if n.neg {
		dst = append(dst, signNegative)
	} else {
		dst = append(dst, signPositive)
	}
	start := len(dst)
	dst = append(dst, byte(int(n.exp)-minExp))
	for i := 0; i < len(n.digits); i += 2 {
		pair := 1 + 10*(n.digits[i]-'0')
		if i+1 < len(n.digits) {
			pair += n.digits[i+1] - '0'
		}
		dst = append(dst, pair)
	}
	dst = append(dst, 0)
	if n.neg {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

func (d *decoder) number() Number {
	var flip byte
	switch d.byte() {
	case signZero:
		return Number{}
	case signPositive:
	case signNegative:
		flip = 0xff
	default:
		d.fail("bad sign of a number")
		return Number{}
	}
	exp := int(d.byte()^flip) + minExp
	var digits [maxDigits + 2]byte
	n := 0
	for n <= maxDigits {
		pair := d.byte() ^ flip
		if pair == 0 || d.err != nil {
			break
		}
		if pair > 100 || n == maxDigits {
			d.fail("bad digits of a number")
			return Number{}
		}
		digits[n], digits[n+1] = '0'+(pair-1)/10, '0'+(pair-1)%10
		n += 2
	}
	if n > 0 && digits[n-1] == '0' {
		n--
	}
	if d.err != nil || n == 0 || digits[0] == '0' || digits[n-1] == '0' {
		d.fail("bad digits of a number")
		return Number{}
	}
	return Number{digits: string(digits[:n]), exp: int16(exp), neg: flip != 0}
}
