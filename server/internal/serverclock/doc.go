// Package serverclock is the one clock of a server. It has two readings, a Moment: the stamp, which
// is the time of day, and the elapsed time.
//
// # Stamps
//
// The stamp is the Date of every answer and the arrival of every record. It never steps back: not
// when the system's clock does, not over a restart, a crash or a reboot. Clients count the age of
// records by it, so a step back would make them begin a search behind the record that they look
// for. It follows the system's clock with these exceptions:
//
//	behind   The system's clock is behind the last stamp. The stamps go on at half speed until
//	         it has caught up: for two hours after a clock that was an hour ahead is corrected.
//	waits    It is more than an hour ahead of the expected stamp. They go on at full speed,
//	         and follow the step once it has lasted ten minutes.
//	refuses  After another boot it is more than 30 days ahead of the last stamp. The stamps go on
//	         at full speed, until Config.Accept, or until the system's clock is set again.
//
// # Elapsed time
//
// Limits, the states of streams, iterators, subscriptions and retention count elapsed time. It
// counts CLOCK_BOOTTIME within one boot of the machine, so no step of the system's clock changes
// it. Over another boot it adds the advance of the system's clock, if that is between none and
// 30 days. Otherwise it adds next to nothing, so that data are kept too long rather than lost.
//
// A record knows its stamp only. The clock remembers which stamps it gave when (type past), and so
// knows which stamps have reached an age: Moment.Horizon.
//
// A clock that was wrong at the boot may be set back later. Then the time between the boots was
// overrated by as much, and the records from before that boot become younger by it.
//
// # When nothing expires
//
// The horizon is before all stamps in the first hour after a boot, in which the system's clock may
// not be set yet; and while stamps and system's clock differ by more than a minute, unless
// Config.Accept has said that the system's clock is right. The difference is logged.
//
// # The file
//
// A file of the data directory vouches for the readings: before a stamp is given, the file durably
// holds a record from which the next start finds a time that is not earlier.
//
//	vouched   a stamp, and the moment by CLOCK_BOOTTIME at which it was taken
//	ceiling   no stamp is later, whatever time goes by
//
// The record bounds the stamps while the process runs: to the vouched one, the time that has gone
// by since, and slack; and to the ceiling. A new record is made once a minute. When the stamps
// step forward a record is made at once, and they follow when that is durable. If the disk hangs,
// they therefore stop at the ceiling: late rather than wrong.
//
// After a start in the same boot, the stamps begin at the latest one that the earlier process can
// have given: the vouched one, the time that has gone by since, and the slack. After a clean end
// that is its last, for the last record's ceiling is no later. In another boot they begin at the
// ceiling, since CLOCK_BOOTTIME has begun anew. A system without CLOCK_BOOTTIME or without a name
// of its boots counts every start as another boot.
package serverclock
