package wire

import (
	"bytes"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// base64Strict refuses base64 with unused bits set, as AWS does.
var base64Strict = base64.StdEncoding.Strict()

// fromBase64 decodes base64. It refuses line breaks, which the decoder would skip.
func fromBase64(text []byte) ([]byte, error) {
	data, err := base64Strict.AppendDecode(make([]byte, 0, len(text)/4*3), text)
	if err != nil || bytes.ContainsAny(text, "\r\n") {
		return nil, notBase64(string(text))
	}
	return data, nil
}

// notBase64 returns AWS's error for a text that is not base64 (kinesalite's test/helpers.js).
func notBase64(text string) error {
	why := "Invalid last non-pad Base64 character dectected"
	if len(text)%4 != 0 {
		why = "Base64 encoded length is expected a multiple of 4 bytes but found: " +
			strconv.Itoa(len(text))
	} else if c := wrongBase64(text); c != "" {
		why = "Invalid Base64 character: '" + c + "'"
	}
	return errors.New("'" + Echo(text) + "' can not be converted to a Blob: " + why)
}

// wrongBase64 returns the first misplaced character, also padding before other characters. "" if
// there is none.
func wrongBase64(text string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for _, c := range strings.TrimRight(text, "=") {
		if !strings.ContainsRune(alphabet, c) {
			return string(c)
		}
	}
	return ""
}
