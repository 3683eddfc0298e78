#include "tests/golden/golden.h"

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "absl/strings/str_split.h"

namespace troupe {
namespace {

constexpr int kDifferencesShown = 10;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

::testing::AssertionResult MatchesGolden(const std::string& text,
                                         const std::string& name) {
  const char* const out = std::getenv("TROUPE_GOLDEN_OUT");
  if (out != nullptr) {
    std::ofstream(std::string(out) + "/" + name) << text;
    return ::testing::AssertionSuccess();
  }
  const std::string golden = ReadFile("tests/golden/" + name);
  if (golden == text) return ::testing::AssertionSuccess();
  const std::vector<std::string> wanted = absl::StrSplit(golden, '\n');
  const std::vector<std::string> made = absl::StrSplit(text, '\n');
  auto result = ::testing::AssertionFailure();
  result << "tests/golden/" << name << " differs:\n";
  int shown = 0;
  for (size_t i = 0; i < std::max(wanted.size(), made.size()); ++i) {
    const std::string want = i < wanted.size() ? wanted[i] : "(end of file)";
    const std::string have = i < made.size() ? made[i] : "(end of text)";
    if (want == have) continue;
    if (++shown > kDifferencesShown) return result << "...\n";
    result << "line " << i + 1 << "\n  golden " << want << "\n  now    " << have
           << "\n";
  }
  return result;
}

}  // namespace troupe
