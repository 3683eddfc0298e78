#include "tests/browser/chromium.h"

#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "clients/cli/local/process.h"
#include "proto/base/check.h"
#include "proto/base/status.h"

namespace troupe {
namespace {

constexpr char kChromium[] = "/usr/bin/chromium";
constexpr char kSecondsMax[] = "60";

std::string TestDirectory() {
  const char* directory = std::getenv("TEST_TMPDIR");
  CHECK(directory != nullptr) << "not run as a test";
  return directory;
}

// The document after its scripts have run.
absl::StatusOr<std::string> DocumentOf(const PageView& view) {
  if (access(kChromium, X_OK) != 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        kChromium, " is not there; third_party/install.sh installs it"));
  }
  const std::string home = TestDirectory();
  std::vector<std::string> command = {
      "/usr/bin/env", absl::StrCat("HOME=", home), "/usr/bin/timeout",
      "--kill-after=5", kSecondsMax, kChromium, "--headless",
      // Tests run as root in containers, where Chromium's sandbox cannot.
      "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
      "--hide-scrollbars", "--force-color-profile=srgb",
      "--force-device-scale-factor=1",
      absl::StrCat("--user-data-dir=", home, "/chromium"),
      absl::StrCat("--window-size=", view.width, ",", view.height),
      // So long goes the page's clock, which runs only while nothing loads.
      "--virtual-time-budget=3000", "--dump-dom"};
  if (!view.screenshot.empty()) {
    command.push_back(absl::StrCat("--screenshot=", view.screenshot));
  }
  if (view.dark) {
    command.push_back("--blink-settings=preferredColorScheme=0");
  }
  command.push_back(view.url);
  ASSIGN_OR_RETURN(const FilterOutcome outcome, RunToEnd({.command = command}));
  if (outcome.exit_code != 0) {
    return absl::AbortedError(absl::StrCat(
        "chromium ended with ", outcome.exit_code, ":\n", outcome.err));
  }
  return outcome.out;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream content;
  content << file.rdbuf();
  return content.str();
}

constexpr char kPixelsPage[] = R"(<!doctype html>
<pre id="report"></pre>
<img id="png" src="data:image/png;base64,@png@">
<script>
addEventListener('load', () => {
  const image = document.getElementById('png');
  const canvas = document.createElement('canvas');
  canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
  const drawing = canvas.getContext('2d', { willReadFrequently: true });
  drawing.drawImage(image, 0, 0);
  document.getElementById('report').textContent = JSON.stringify(
    @places@.map(([x, y]) => [...drawing.getImageData(x, y, 1, 1).data]));
  image.remove();
});
</script>
)";

}  // namespace

absl::StatusOr<nlohmann::json> ReportOf(const PageView& view) {
  ASSIGN_OR_RETURN(const std::string document, DocumentOf(view));
  const size_t element = document.find("id=\"report\"");
  const size_t begin = document.find('>', element) + 1;
  const size_t end = document.find("</pre>", element);
  if (element == std::string::npos || end == std::string::npos) {
    return absl::NotFoundError(
        absl::StrCat("the page reports nothing:\n", document.substr(0, 2000)));
  }
  const std::string text = absl::StrReplaceAll(
      document.substr(begin, end - begin),
      {{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}, {"&nbsp;", " "}});
  auto report =
      nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (report.is_discarded()) {
    return absl::NotFoundError(
        absl::StrCat("the page's report is no JSON: \"", text, "\""));
  }
  return report;
}

absl::StatusOr<std::vector<Rgb>> ColoursAt(const std::string& png,
                                           const std::vector<Pixel>& places) {
  nlohmann::json list = nlohmann::json::array();
  for (const Pixel& place : places) list.push_back({place.x, place.y});
  const std::string page = absl::StrReplaceAll(
      kPixelsPage, {{"@png@", absl::Base64Escape(ReadFile(png))},
                    {"@places@", list.dump()}});
  ASSIGN_OR_RETURN(const nlohmann::json report,
                   ReportOf({.url = FileUrl(TestFile("pixels.html", page))}));
  std::vector<Rgb> colours;
  for (const auto& pixel : report) {
    colours.push_back(
        {pixel[0].get<int>(), pixel[1].get<int>(), pixel[2].get<int>()});
  }
  return colours;
}

std::string TestFile(const std::string& name, const std::string& content) {
  const std::string path = absl::StrCat(TestDirectory(), "/", name);
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

std::string FileUrl(const std::string& path) {
  return absl::StrCat("file://", path);
}

}  // namespace troupe
