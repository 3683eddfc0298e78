// No two types have one name. The linker takes functions of like-named types
// for one another, and keeps either: std::vector<Segment> of two Segments is
// one set of functions, which moves one of them by the other's size.
#include <map>
#include <regex>
#include <string>

#include "gtest/gtest.h"
#include "tests/style/source_tree.h"

namespace troupe {
namespace {

// Types defined outside of functions and other types stand at a line's
// beginning; those in an unnamed namespace are their file's own.
class Names {
 public:
  void Read(const SourceFile& file) {
    static const std::regex* const kSpace =
        new std::regex(R"(namespace ([\w:]*) ?\{)");
    static const std::regex* const kType = new std::regex(
        R"((?:struct|class|enum class|union) (?:alignas\(\w+\) )?(\w+)(?: final)?(?: [:{].*)?)");
    std::string space;
    bool unnamed = false;
    for (const std::string& line : file.lines) {
      std::smatch found;
      if (std::regex_match(line, found, *kSpace)) {
        unnamed = found[1].length() == 0;
        if (!unnamed) space = found[1];
      } else if (line == "}  // namespace") {
        unnamed = false;
      } else if (!unnamed && std::regex_match(line, found, *kType)) {
        const auto [other, is_new] =
            files_.insert({space + "::" + found[1].str(), file.path});
        EXPECT_TRUE(is_new) << file.path << ": " << found[1] << " is the name "
                            << "of another type in " << other->second;
      }
    }
  }

  size_t size() const { return files_.size(); }

 private:
  std::map<std::string, std::string> files_;
};

TEST(Names, NoTwoTypesHaveOne) {
  Names names;
  for (const SourceFile& file : ReadSourceTree()) names.Read(file);
  EXPECT_GT(names.size(), 300u);
}

}  // namespace
}  // namespace troupe
