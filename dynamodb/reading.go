package dynamodb

// enterReading begins a reading of the configuration: end it with s.running.end. After Close it
// refuses, but not while Close waits for calls, which may have to read before they can end.
func (s *Store) enterReading() error {
	if s.running.join() {
		return nil
	}
	return s.enter()
}
