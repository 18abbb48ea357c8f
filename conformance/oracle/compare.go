package oracle

import "strings"

// compare holds the decision of a reserve line against what the semantics say.
func (c *checker) compare(l *reserveLine, want *answer) {
	var why strings.Builder
	for _, s := range want.statuses {
		why.WriteString(s.why + "; ")
	}
	if *l.Allowed != want.allowed {
		c.disagree("decision: allowed", *l.Allowed, want.allowed, why.String())
	} else if l.RetryAfterMS != want.retry {
		c.disagree("retry-after", l.RetryAfterMS, want.retry, why.String())
	}
	if !*l.Allowed {
		c.report.Overall++
	}
	missing := map[string]*statusLine{}
	for i := range want.statuses {
		missing[want.statuses[i].about()] = &want.statuses[i]
	}
	for i := range l.Limits {
		about := l.Limits[i].about()
		if law := missing[about]; law != nil {
			c.compareStatus(about, &l.Limits[i], law)
		} else {
			c.disagree(about, "judged", "not judged, or judged once", why.String())
		}
		delete(missing, about)
	}
	for _, law := range want.statuses {
		if missing[law.about()] != nil {
			c.disagree(law.about(), "not judged", "judged", law.why)
		}
	}
}

func (c *checker) compareStatus(about string, log, law *statusLine) {
	c.report.Judged[law.Kind]++
	c.report.Available++
	if law.Exceeded {
		c.report.RetryAfter++
	}
	for _, f := range []struct {
		name     string
		log, law any
	}{
		{"kind", log.Kind, law.Kind},
		{"capacity", log.Capacity, law.Capacity},
		{"available", log.Available, law.Available},
		{"requested", log.Requested, law.Requested},
		{"exceeded", log.Exceeded, law.Exceeded},
		{"shadow", log.Shadow, law.Shadow},
		{"retry-after", log.RetryAfterMS, law.RetryAfterMS},
	} {
		if f.log != f.law {
			c.disagree(about+": "+f.name, f.log, f.law, law.why)
		}
	}
}

func (s *statusLine) about() string { return s.Entity + "/" + s.Resource + " " + s.Limit }
