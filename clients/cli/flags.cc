#include "clients/cli/flags.h"

#include "CLI/CLI.hpp"
#include "absl/strings/str_join.h"

namespace troupe {
namespace {

template <typename Value>
CLI::Option* Add(CLI::App& app, std::string flag, Value& value,
                 const Flags::Doc& doc) {
  const bool is_required = flag.back() == '!';
  if (is_required) flag.pop_back();
  return app.add_option(flag, value, doc.text)
      ->type_name(doc.value)
      ->required(is_required);
}

}  // namespace

void Flags::Required(const char* name, std::string& value, const char* text) {
  app_.add_option(name, value, text)->required()->type_name("");
}

void Flags::Optional(const char* name, std::string& value, const char* text) {
  app_.add_option(name, value, text)->type_name("");
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
  Add(app_, flag, value, doc);
}

void Flags::Integer(const char* flag, int64_t& value, const Range& range,
                    const Doc& doc) {
  // The name of the check would be shown in the help as well.
  Add(app_, flag, value, doc)
      ->check(CLI::Range(range.least, range.most).description(""));
}

void Flags::Choice(const char* flag, std::string& value,
                   const std::vector<std::string>& choices, const char* text) {
  app_.add_option(flag, value, text)
      ->type_name(absl::StrJoin(choices, "|"))
      ->check(CLI::IsMember(choices).description(""));
}

}  // namespace troupe
