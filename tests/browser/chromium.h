// Pictures and pages as a browser shows them: Debian's Chromium, headless. A
// page is given a script that measures it where it is laid out, so that a test
// can ask for what people see: does this text fit, do these overlap, which
// colour is that point?
#ifndef TROUPE_TESTS_BROWSER_CHROMIUM_H_
#define TROUPE_TESTS_BROWSER_CHROMIUM_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "nlohmann/json.hpp"

namespace troupe {

struct PageView {
  std::string url;  // http: or file:
  int width = 1280;
  int height = 800;
  std::string screenshot;  // a PNG file to write; empty: none
  bool dark = false;       // the reader prefers it so
};

// What the page's script leaves, as JSON text, in an element with the id
// "report", once everything is loaded. An error where there is no Chromium (the
// message says how to get it), where it fails or takes longer than a minute, or
// where the page reports nothing.
absl::StatusOr<nlohmann::json> ReportOf(const PageView& view);

struct Pixel {
  int x = 0;
  int y = 0;
};
using Rgb = std::array<int, 3>;

// The colours of a PNG file at these places. The browser decodes it, too.
absl::StatusOr<std::vector<Rgb>> ColoursAt(const std::string& png,
                                           const std::vector<Pixel>& places);

// A file of this test's own; returns its path.
std::string TestFile(const std::string& name, const std::string& content);
std::string FileUrl(const std::string& path);

}  // namespace troupe

#endif  // TROUPE_TESTS_BROWSER_CHROMIUM_H_
