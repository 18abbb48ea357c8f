// Package chart draws figures about numbers: as text for a terminal, and as a page of HTML that
// needs nothing else, neither a network nor a script.
//
// A figure is plain data ([Columns], [Lines], [Bars], [Distribution], [Comparison]) and is drawn in
// both places: [WriteText] and [WriteSparks] write text, [Page.Write] writes a page of figures and
// tables. Nothing a figure holds makes them fail or panic: what is negative is drawn as nothing,
// what is missing counts as 0, and names stay text, in which characters that nobody would see are
// escaped.
//
// All geometry is in integers.
package chart
