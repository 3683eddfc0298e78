#include "clients/hugging_face/json_fields.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JsonFieldsTest : public ::testing::Test {
 protected:
  const nlohmann::json json_ = nlohmann::json::parse(R"({
    "layers": 12, "rate": 0.5, "name": "silu", "on": true, "nothing": null,
    "list": [1, 2.5], "mixed": [1, "a"], "large": 3000000000, "inner": {"x": 1}
  })");
  const JsonFields fields_{json_, "d/config.json"};
};

TEST_F(JsonFieldsTest, GivesWhatIsThere) {
  EXPECT_EQ(*fields_.Int("layers"), 12);
  EXPECT_EQ(*fields_.Number("rate"), 0.5);
  EXPECT_EQ(*fields_.Number("layers"), 12);
  EXPECT_EQ(*fields_.Text("name"), "silu");
  EXPECT_EQ(*fields_.BoolOr("on", false), true);
  EXPECT_THAT(*fields_.Numbers("list"), ElementsAre(1, 2.5));
  EXPECT_EQ(*fields_.Object("inner")->Int("x"), 1);
}

TEST_F(JsonFieldsTest, NullIsAbsent) {
  EXPECT_FALSE(fields_.Has("nothing"));
  EXPECT_EQ(*fields_.NumberOr("nothing", 7), 7);
  EXPECT_EQ(*fields_.BoolOr("absent", true), true);
  EXPECT_TRUE(fields_.Expect("absent", {"silu"}).ok());
}

TEST_F(JsonFieldsTest, ErrorsNameFileAndKey) {
  EXPECT_EQ(fields_.Int("name").status().message(),
            "d/config.json: name: is no integer from 0 to 2147483647");
  EXPECT_EQ(fields_.Int("absent").status().message(),
            "d/config.json: absent: is missing");
  EXPECT_FALSE(fields_.Int("large").ok());
  EXPECT_FALSE(fields_.Int("rate").ok());
  EXPECT_FALSE(fields_.Number("name").ok());
  EXPECT_FALSE(fields_.Text("on").ok());
  EXPECT_FALSE(fields_.BoolOr("name", true).ok());
  EXPECT_FALSE(fields_.Numbers("mixed").ok());
  EXPECT_FALSE(fields_.Numbers("layers").ok());
  EXPECT_FALSE(fields_.Object("list").ok());
  EXPECT_THAT(fields_.Object("inner")->Int("y").status().message(),
              HasSubstr("d/config.json: inner: y: is missing"));
}

TEST_F(JsonFieldsTest, ExpectedValues) {
  EXPECT_TRUE(fields_.Expect("name", {"gelu", "silu"}).ok());
  EXPECT_EQ(fields_.Expect("name", {"gelu", "relu"}).message(),
            "d/config.json: name: 'silu' is not supported, only gelu and relu");
  EXPECT_TRUE(fields_.ExpectBool("on", true).ok());
  EXPECT_FALSE(fields_.ExpectBool("on", false).ok());
}

}  // namespace
}  // namespace troupe
