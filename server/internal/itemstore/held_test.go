package itemstore

import "testing"

// TestHeld checks that the memory of a removed table counts no more, also if a write ends after
// the removal.
func TestHeld(t *testing.T) {
	var h Held
	sum := h.Add(10) + h.Add(5) + h.Add(-3)
	if sum -= h.End(); sum != 0 {
		t.Errorf("%d bytes are left of a removed table", sum)
	}
	if late := h.Add(7); late != 0 {
		t.Errorf("a late write counted %d bytes", late)
	}
}
