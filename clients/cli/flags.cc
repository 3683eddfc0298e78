#include "clients/cli/flags.h"

#include <cmath>
#include <functional>
#include <utility>

#include "CLI/CLI.hpp"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace troupe {
namespace {

// Takes the sign of a required flag off it.
bool TakeRequired(std::string& flag) {
  const bool is_required = flag.back() == '!';
  if (is_required) flag.pop_back();
  return is_required;
}

template <typename Value>
CLI::Option* Add(CLI::App& app, std::string flag, Value& value,
                 const Flags::Doc& doc) {
  const bool is_required = TakeRequired(flag);
  return app.add_option(flag, value, doc.text)
      ->type_name(doc.value)
      ->required(is_required);
}

// `read` sets the variable, or says what is wrong. CLI11's own conversion takes
// numbers that no variable holds, and octal ones.
void AddNumber(CLI::App& app, std::string flag, const Flags::Doc& doc,
               std::function<std::string(const std::string&)> read) {
  const bool is_required = TakeRequired(flag);
  app.add_option_function<std::string>(
         flag, [](const std::string&) {}, doc.text)
      ->type_name(doc.value)
      ->required(is_required)
      // The name of the check would be shown in the help as well.
      ->check(CLI::Validator(std::move(read), ""));
}

}  // namespace

void Flags::Required(const char* name, std::string& value, const char* text) {
  app_.add_option(name, value, text)->required()->type_name("");
}

void Flags::Optional(const char* name, std::string& value, const char* text) {
  app_.add_option(name, value, text)->type_name("");
}

void Flags::RequiredTexts(const char* name, std::vector<std::string>& values,
                          const char* text) {
  app_.add_option(name, values, text)->required()->type_name("");
}

void Flags::Count(const char* flag, int& value, const char* text) {
  app_.add_flag(flag, value, text);
}

void Flags::Text(const char* flag, std::string& value, const Doc& doc) {
  Add(app_, flag, value, doc);
}

void Flags::Texts(const char* flag, std::vector<std::string>& values,
                  const Doc& doc) {
  // One value a flag: "--set a=1 FILE" must leave FILE alone; and commas in it,
  // as in a list, are its own.
  Add(app_, flag, values, doc)->allow_extra_args(false);
}

void Flags::Switch(const char* flag, bool& value, const char* text) {
  app_.add_flag(flag, value, text);
}

void Flags::Number(const char* flag, double& value, const Doc& doc) {
  AddNumber(app_, flag, doc, [&value](const std::string& text) {
    double number = 0;
    if (!absl::SimpleAtod(text, &number) || !std::isfinite(number)) {
      return absl::StrCat("expected a number, found \"", text, "\"");
    }
    value = number;
    return std::string();
  });
}

void Flags::Integer(const char* flag, int64_t& value, const Range& range,
                    const Doc& doc) {
  AddNumber(app_, flag, doc, [&value, range](const std::string& text) {
    int64_t number = 0;
    if (!absl::SimpleAtoi(text, &number) || number < range.least ||
        number > range.most) {
      return absl::StrCat("expected a whole number from ", range.least, " to ",
                          range.most, ", found \"", text, "\"");
    }
    value = number;
    return std::string();
  });
}

void Flags::Choice(const char* flag, std::string& value,
                   const std::vector<std::string>& choices, const char* text) {
  app_.add_option(flag, value, text)
      ->type_name(absl::StrJoin(choices, "|"))
      ->check(CLI::IsMember(choices).description(""));
}

}  // namespace troupe
