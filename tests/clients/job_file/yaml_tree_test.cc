#include "clients/job_file/yaml_tree.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

const YamlSource kSource{"job.yaml"};

std::string ErrorOf(const std::string& text) {
  const absl::StatusOr<YamlNode> tree = ParseYaml(text, kSource);
  if (tree.ok()) return "accepted";
  EXPECT_EQ(tree.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tree.status().message());
}

TEST(YamlTree, KnowsWhereEachValueStands) {
  const YamlNode root =
      ParseYaml("a: 1\nb: {c: \"x\", d: [2, 3]}  # hm\n", kSource).value();
  ASSERT_EQ(root.kind, YamlNode::Kind::kMap);
  ASSERT_EQ(root.keys.size(), 2);
  EXPECT_EQ(kSource.At(root.keys[1]), "job.yaml:2:1");
  const YamlNode& b = root.items[1];
  EXPECT_EQ(kSource.At(b), "job.yaml:2:4");
  EXPECT_EQ(kSource.At(b.items[0]), "job.yaml:2:8");
  EXPECT_TRUE(b.items[0].quoted);
  EXPECT_EQ(b.items[0].text, "x");
  ASSERT_EQ(b.items[1].items.size(), 2);
  EXPECT_EQ(kSource.At(b.items[1].items[1]), "job.yaml:2:20");
  EXPECT_FALSE(b.items[1].items[1].quoted);
}

TEST(YamlTree, ReadsJson) {
  const YamlNode root =
      ParseYaml("{\"a\": {\"b\": [1.5, true, null]}}", kSource).value();
  const YamlNode& list = root.items[0].items[0];
  ASSERT_EQ(list.items.size(), 3);
  EXPECT_EQ(list.items[0].text, "1.5");
  EXPECT_EQ(list.items[2].kind, YamlNode::Kind::kNull);
}

TEST(YamlTree, ExpandsAliases) {
  const YamlNode root =
      ParseYaml("a: &x {b: 7}\nc: *x\nd: !!str 12\n", kSource).value();
  EXPECT_EQ(root.items[1].items[0].text, "7");
  EXPECT_TRUE(root.items[2].quoted);
}

TEST(YamlTree, EmptyTextIsNothing) {
  for (const char* text : {"", "\n\n", "# a comment\n", "---\n"}) {
    EXPECT_EQ(ParseYaml(text, kSource).value().kind, YamlNode::Kind::kNull)
        << text;
  }
}

// The parser misses something else first.
TEST(YamlTree, NamesATab) {
  const auto begins = [](const std::string& text, const std::string& with) {
    EXPECT_EQ(ErrorOf(text).rfind(with, 0), 0) << ErrorOf(text);
  };
  const std::string tab =
      ": not YAML: a tab begins this line, where only spaces may (";
  begins("name: x\nmodel:\n\tarchitecture: gpt2\n", "job.yaml:3:1" + tab);
  begins("model:\n  a: 1\n\tb: 2\n", "job.yaml:3:1" + tab);
  begins("model:\n  \ta: 1\n  b: 2\n", "job.yaml:2:3" + tab);
  EXPECT_EQ(ErrorOf("a: 1\t# behind a value\n"), "accepted");
}

TEST(YamlTree, RefusesWithThePlace) {
  EXPECT_EQ(ErrorOf("a: 1\nb: 2\na: 3\n"),
            "job.yaml:3:1: a is there twice; the first is in line 1");
  EXPECT_EQ(
      ErrorOf("a: 1\n---\nb: 2\n"),
      "job.yaml:2:1: a second document begins here; a job file holds one");
  EXPECT_EQ(ErrorOf("a: [1, 2\nb: 3\n").substr(0, 12), "job.yaml:2:2");
  EXPECT_EQ(ErrorOf("a: b: c\n").substr(0, 21), "job.yaml:1:5: not YAM");
  EXPECT_EQ(ErrorOf("\ta: 1\n").substr(0, 13), "job.yaml:1:1:");
  EXPECT_EQ(ErrorOf("a: !thing 1\n"),
            "job.yaml:1:4: the tag !thing means nothing in a job file");
  EXPECT_EQ(ErrorOf("[1]: 2\n"),
            "job.yaml:1:1: expected a field's name, found a list");
  EXPECT_EQ(ErrorOf("a: *nobody\n").substr(0, 13), "job.yaml:1:4:");
  EXPECT_EQ(ErrorOf("a: 1\nb: \xff\n"), "job.yaml:2:4: this is not UTF-8 text");
}

TEST(YamlTree, RefusesWhatIsAbsurd) {
  EXPECT_EQ(ErrorOf(std::string(kYamlBytesMax + 1, ' ')),
            "job.yaml:1:1: 1048577 bytes; at most 1048576 are read");
  EXPECT_EQ(ErrorOf(std::string(40, '[') + std::string(40, ']')).substr(0, 14),
            "job.yaml:1:33:");
  EXPECT_NE(ErrorOf(std::string(100000, '[')), "accepted");
  std::string many = "[";
  for (int i = 0; i <= kYamlNodesMax; ++i) many += "1,";
  EXPECT_NE(ErrorOf(many + "1]").find("more than 20000 values"),
            std::string::npos);
  // Nine levels of nine aliases each: 9^9 values from a few hundred bytes.
  std::string laughs = "a0: &a0 [1,1,1,1,1,1,1,1,1]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string last = "*a" + std::to_string(i - 1);
    laughs += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 9; ++j) laughs += last + (j < 8 ? "," : "]\n");
  }
  EXPECT_NE(ErrorOf(laughs).find("more than 20000 values"), std::string::npos);
  // What the first aliases make too large is not expanded by the others.
  std::string echoes = "a: &a \"" + std::string(500000, 'x') + "\"\nb: [";
  for (int i = 0; i < 100000; ++i) echoes += "*a,";
  EXPECT_EQ(ErrorOf(echoes + "*a]\n"),
            "job.yaml:1:4: more than 2097152 bytes once aliases are expanded");
  std::string wide = "a: &a [";
  for (int i = 0; i < 15000; ++i) wide += "1,";
  wide += "1]\nb: [";
  for (int i = 0; i < 200000; ++i) wide += "*a,";
  EXPECT_EQ(ErrorOf(wide + "*a]\n"), "job.yaml:1:4: more than 20000 values");
}

// yaml-cpp makes the single byte a0 of \\_ and 85 of \\N.
TEST(ParseYaml, EscapesMakeUtf8OrAreRefused) {
  for (const char* text : {"a: \"x\\_y\"", "a: \"\\N\"", "a: \"\\0\""}) {
    const auto tree = ParseYaml(text, {"job.yaml"});
    EXPECT_EQ(tree.status().message(),
              "job.yaml:1:4: an escape in it makes no UTF-8 text; write the "
              "character")
        << text;
  }
  EXPECT_TRUE(ParseYaml("a: \"\\t\\u00e9\"", {"job.yaml"}).ok());
}

}  // namespace
}  // namespace troupe
