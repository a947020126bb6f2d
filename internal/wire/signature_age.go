package wire

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/runnel-stream/runnel/internal/seam"
)

// parseDate reads the date: ISO 8601's basic format or, in a Date header, HTTP's own.
func (a *authorization) parseDate() (time.Time, *Error) {
	date, err := time.Parse(basicFormat, a.date)
	if err != nil && a.query == nil {
		date, err = http.ParseTime(a.date)
	}
	if err != nil {
		return time.Time{}, incompleteSignature(fmt.Sprintf("Date must be in ISO-8601 'basic "+
			"format'. Got '%s'. See http://en.wikipedia.org/wiki/ISO_8601", a.date))
	}
	return date.UTC(), nil
}

// skewOf is the allowed error of a request's clock, to either side; so a signed call is valid for
// up to twice as long. Kinesis names 5 minutes in its refusals (amazon-kinesis-producer#222), which
// is H, DynamoDB 15 (aws-sdk-js#254).
func skewOf(service string) time.Duration {
	if service == DynamoDB {
		return 15 * time.Minute
	}
	return seam.H()
}

// checkAge refuses a request that is older than the allowed clock error, or than a presigned
// request's lifetime, and one from the future. It returns the time at which the signature becomes
// too old.
func (a *authorization) checkAge(
	date, now time.Time, service string,
) (expires time.Time, refused *Error) {
	skew := skewOf(service)
	age := skew
	if a.lifetime != "" {
		const longest = 7 * 24 * 60 * 60 // AWS: "Presigned requests", X-Amz-Expires
		seconds, err := strconv.Atoi(a.lifetime)
		if err != nil || seconds < 1 || seconds > longest { // the words are a guess
			return expires, incompleteSignature(fmt.Sprintf("X-Amz-Expires must be a number of "+
				"seconds from 1 to %d. Got '%s'.", longest, a.lifetime))
		}
		age = time.Duration(seconds) * time.Second
	}
	expires = date.Add(age)
	switch earliest, latest := now.Add(-age), now.Add(skew); {
	case date.Before(earliest):
		return expires, invalidSignature(fmt.Sprintf("Signature expired: %s is now earlier than "+
			"%s (%s - %s)", date.Format(basicFormat), earliest.Format(basicFormat),
			now.Format(basicFormat), minutes(age)))
	case date.After(latest):
		return expires, invalidSignature(fmt.Sprintf("Signature not yet current: %s is still "+
			"later than %s (%s + %s)", date.Format(basicFormat), latest.Format(basicFormat),
			now.Format(basicFormat), minutes(skew)))
	}
	return expires, nil
}

func minutes(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%d min.", d/time.Minute)
	}
	return fmt.Sprintf("%d sec.", d/time.Second)
}
