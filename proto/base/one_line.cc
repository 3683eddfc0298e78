#include "proto/base/one_line.h"

#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"

namespace troupe {
namespace {

// The bytes of the control character that begins here; 0: there is none. Those
// from U+0080 to U+009F are two bytes in UTF-8.
size_t ControlBytes(absl::string_view text) {
  if (absl::ascii_iscntrl(text[0])) return 1;
  const bool is_c1 = text.size() > 1 && text[0] == '\xc2' &&
                     static_cast<uint8_t>(text[1]) <= 0x9f;
  return is_c1 ? 2 : 0;
}

bool ContinuesCharacter(char byte) { return (byte & 0xc0) == 0x80; }

}  // namespace

bool IsOneLine(absl::string_view text, size_t bytes_max) {
  if (text.size() > bytes_max) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (ControlBytes(text.substr(i)) > 0) return false;
  }
  return true;
}

std::string OneLine(absl::string_view text, size_t bytes_max) {
  if (IsOneLine(text, bytes_max)) return std::string(text);
  std::string line;
  for (size_t i = 0; i < text.size();) {
    const size_t control = ControlBytes(text.substr(i));
    size_t size = control;
    if (control == 0) {
      size = 1;
      while (i + size < text.size() && ContinuesCharacter(text[i + size])) {
        ++size;
      }
    }
    const absl::string_view character = text.substr(i, size);
    const std::string shown =
        control > 0 ? absl::CHexEscape(character) : std::string(character);
    if (line.size() + shown.size() > bytes_max) {
      return absl::StrCat(line, "... (", text.size(), " bytes)");
    }
    line += shown;
    i += size;
  }
  return line;
}

}  // namespace troupe
