// Package site tests the site that "make docs" builds of docs/: links, and what a real Chromium shows of it. "make
// test-site" builds it, installs the browser and runs the tests.
package site
