// Package pictures makes the pictures of docs/ from texts: docs/images/NAME.txt becomes docs/images/NAME.svg. "go test
// ./integration/pictures -update" makes them anew.
//
// A text has one statement on each line; columns and rows count from 0, and "|" begins a new line of a label:
//
//	title TEXT                   a description of what is shown
//	box NAME COLUMN,ROW LABEL    a box
//	group COLUMN,ROW WxH LABEL   a frame around W columns and H rows
//	arrow FROM TO [LABEL]        from one box to another in the same row, column or diagonal
//	step TIME | TEXT             a line of a timeline; a text with steps has nothing else
package pictures
