#include "proto/base/shell_word.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace troupe {
namespace {

// Whether no letter of a word means anything, wherever in it it stands.
bool IsPlain(absl::string_view text, absl::string_view others) {
  for (const char c : text) {
    const bool plain =
        absl::ascii_isalnum(c) || others.find(c) != absl::string_view::npos;
    if (!plain) return false;
  }
  return !text.empty() && text[0] != '-';
}

std::string Quoted(absl::string_view text, absl::string_view quote) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", quote}}), "'");
}

}  // namespace

std::string ShellWord(absl::string_view text) {
  return IsPlain(text, "_./+-:") ? std::string(text) : Quoted(text, R"('\'')");
}

std::string YamlWord(absl::string_view text) {
  return IsPlain(text, "_./+-") ? std::string(text) : Quoted(text, "''");
}

}  // namespace troupe
