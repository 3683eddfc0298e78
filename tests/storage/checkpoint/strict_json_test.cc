#include "storage/checkpoint/strict_json.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;

TEST(StrictJson, RefusesWhatIsNoObject) {
  EXPECT_TRUE(Fails(ParseJsonObject("{\"a\": 1").status(), kInvalid,
                    {"not JSON at byte 8"}));
  EXPECT_TRUE(Fails(ParseJsonObject("").status(), kInvalid, {"not JSON"}));
  EXPECT_TRUE(Fails(ParseJsonObject("[1]").status(), kInvalid,
                    {"expected an object, found array"}));
  EXPECT_TRUE(Fails(ParseJsonObject("{\"a\": \"\xff\"}").status(), kInvalid,
                    {"not JSON"}));
}

TEST(StrictJson, FindsKeysThatComeTwice) {
  EXPECT_TRUE(Fails(ParseJsonObject("{\"a\": 1, \"b\": 2, \"a\": 3}").status(),
                    kInvalid, {"\"a\" is there twice"}));
  EXPECT_TRUE(Fails(ParseJsonObject("{\"x\": {\"a\": 1, \"a\": 3}}").status(),
                    kInvalid, {"\"a\" is there twice"}));
  EXPECT_TRUE(ParseJsonObject("{\"x\": {\"a\": 1}, \"a\": [{\"a\": 2}]}").ok());
}

TEST(StrictJson, FieldsHaveTheirTypes) {
  const auto json = ParseJsonObject(
      "{\"s\": \"text\", \"u\": 18446744073709551615, \"n\": -1, "
      "\"l\": [1, 2], \"bad\": [1, 2.5], \"big\": [9223372036854775808]}");
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(*StringField(*json, "s"), "text");
  EXPECT_EQ(*UintField(*json, "u"), 18446744073709551615u);
  EXPECT_EQ(*IntsField(*json, "l"), (std::vector<int64_t>{1, 2}));
  EXPECT_TRUE(Fails(UintField(*json, "n").status(), kInvalid,
                    {"\"n\" must be an integer >= 0"}));
  EXPECT_TRUE(
      Fails(UintField(*json, "no").status(), kInvalid, {"\"no\" is missing"}));
  EXPECT_TRUE(Fails(StringField(*json, "u").status(), kInvalid,
                    {"\"u\" must be a string, found number"}));
  EXPECT_FALSE(IntsField(*json, "bad").ok());
  EXPECT_FALSE(IntsField(*json, "big").ok());
  EXPECT_FALSE(ArrayField(*json, "s").ok());
  EXPECT_TRUE(Fails(StringField(nlohmann::json(3), "s").status(), kInvalid,
                    {"expected an object with \"s\", found number"}));
}

TEST(StrictJson, FormattingNeverThrows) {
  EXPECT_EQ(FormatJson(nlohmann::json("a\xff")), "\"a\xef\xbf\xbd\"");
}

TEST(StrictJson, ElementsOfArraysAreTakenOneByOne) {
  const std::string text =
      R"({"a": [{"n": 1}, 2, {"n": {"n": 3}}], "o": {"p": 4}, "b": [{"n": 5}]})";
  std::vector<std::string> taken;
  const auto rest = ParseJsonObject(
      text,
      [&](absl::string_view key,
          const nlohmann::json& element) -> absl::StatusOr<bool> {
        taken.push_back(absl::StrCat(key, " ", element.dump()));
        return key == "a";
      });
  ASSERT_TRUE(rest.ok()) << rest.status();
  EXPECT_EQ(taken, (std::vector<std::string>{
                       R"(a {"n":1})", R"(a {"n":{"n":3}})", R"(b {"n":5})"}));
  EXPECT_EQ(rest->dump(), R"({"a":[2],"b":[{"n":5}],"o":{"p":4}})");
  const auto refused = ParseJsonObject(
      text,
      [](absl::string_view, const nlohmann::json&) -> absl::StatusOr<bool> {
        return absl::DataLossError("bad element");
      });
  EXPECT_EQ(refused.status(), absl::DataLossError("bad element"));
}

}  // namespace
}  // namespace troupe
