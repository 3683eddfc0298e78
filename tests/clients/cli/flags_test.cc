#include "clients/cli/flags.h"

#include "CLI/CLI.hpp"
#include "gtest/gtest.h"

namespace troupe {
namespace {

// Whatever a command may declare.
struct Values {
  std::string file;
  std::string more;
  std::string text;
  std::vector<std::string> texts;
  bool on = false;
  double number = 0.5;
  int64_t count = 3;
  std::string choice = "svg";
};

// The parsed values; the message of the refusal in `refused`.
Values Parse(std::vector<std::string> arguments, std::string* refused) {
  CLI::App app;
  Flags flags(app);
  Values values;
  flags.Required("FILE", values.file, "");
  flags.Optional("MORE", values.more, "");
  flags.Text("--text!", values.text, {});
  flags.Texts("--set", values.texts, {});
  flags.Switch("--on,-o", values.on, "");
  flags.Number("--number", values.number, {});
  flags.Integer("--count", values.count, {1, 8}, {});
  flags.Choice("--choice", values.choice, {"svg", "text"}, "");
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    *refused = e.what();
  }
  return values;
}

TEST(Flags, FillTheVariables) {
  std::string refused;
  const Values values =
      Parse({"--set", "a=[1,2]", "file", "--set", "b=c d", "-o", "--text", "t",
             "--number", "1e-3", "--count", "8", "--choice", "text"},
            &refused);
  EXPECT_EQ(refused, "");
  EXPECT_EQ(values.file, "file") << "a repeatable flag takes one value each";
  EXPECT_EQ(values.more, "");
  EXPECT_EQ(values.texts, (std::vector<std::string>{"a=[1,2]", "b=c d"}));
  EXPECT_TRUE(values.on);
  EXPECT_EQ(values.number, 1e-3);
  EXPECT_EQ(values.count, 8);
  EXPECT_EQ(values.choice, "text");
}

TEST(Flags, KeepTheDefaults) {
  std::string refused;
  const Values values = Parse({"file", "more", "--text", "t"}, &refused);
  EXPECT_EQ(refused, "");
  EXPECT_EQ(values.more, "more");
  EXPECT_EQ(values.count, 3);
  EXPECT_EQ(values.number, 0.5);
  EXPECT_FALSE(values.on);
}

TEST(Flags, Refuse) {
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{
           {"--text", "t"},
           {"file"},
           {"file", "--text", "t", "--count", "9"},
           {"file", "--text", "t", "--count", "x"},
           {"file", "--text", "t", "--number", "x"},
           {"file", "--text", "t", "--choice", "gif"},
           {"file", "--text", "t", "--other"}}) {
    std::string refused;
    Parse(arguments, &refused);
    EXPECT_NE(refused, "");
  }
}

// Not the largest that a variable holds, nor what stands before the rest.
TEST(Flags, TakeNumbersAsTheyAreWrittenOrNotAtAll) {
  const auto with = [](const char* flag, const char* value) {
    std::string refused;
    Parse({"file", "--text", "t", flag, value}, &refused);
    return refused;
  };
  EXPECT_EQ(with("--count", "99999999999999999999"),
            "--count: expected a whole number from 1 to 8, found "
            "\"99999999999999999999\"");
  for (const char* wrong : {"0x4", "4.0", "4x", "", "1e0", "-4"}) {
    EXPECT_NE(with("--count", wrong), "") << wrong;
  }
  for (const char* wrong : {"1e999", "nan", "inf", "1,5", "0.5x", ""}) {
    EXPECT_NE(with("--number", wrong), "") << wrong;
  }
  std::string refused;
  EXPECT_EQ(Parse({"file", "--text", "t", "--count", "07"}, &refused).count, 7);
  EXPECT_EQ(refused, "");
}

TEST(Flags, ShowTheirChoices) {
  CLI::App app;
  Flags flags(app);
  std::string choice;
  flags.Choice("--choice", choice, {"svg", "text"}, "How it is drawn");
  EXPECT_NE(app.help().find("--choice svg|text "), std::string::npos)
      << app.help();
}

}  // namespace
}  // namespace troupe
