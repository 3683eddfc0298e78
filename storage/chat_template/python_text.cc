#include "storage/chat_template/python_text.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/utf8.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace troupe::chat {
namespace {

icu::UnicodeString Wide(absl::string_view text) {
  return icu::UnicodeString::fromUTF8(
      icu::StringPiece(text.data(), static_cast<int32_t>(text.size())));
}

std::string Narrow(const icu::UnicodeString& wide) {
  std::string text;
  wide.toUTF8String(text);
  return text;
}

// The character that ends before byte `end`, which moves before it.
uint32_t TakeCharacterBefore(absl::string_view text, size_t& end) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  auto at = static_cast<int32_t>(end);
  UChar32 code = 0;
  U8_PREV(bytes, 0, at, code);
  end = static_cast<size_t>(at);
  return static_cast<uint32_t>(code);
}

std::vector<std::string> SplitAtSpaces(absl::string_view text, int64_t most) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (true) {
    size_t next = at;
    while (at < text.size() && IsSpace(TakeCharacter(text, next))) at = next;
    if (at == text.size()) return parts;
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(Strip(text.substr(at), std::nullopt, {.left = false}));
      return parts;
    }
    const size_t begin = at;
    for (next = at; at < text.size(); at = next) {
      if (IsSpace(TakeCharacter(text, next))) break;
    }
    parts.emplace_back(text.substr(begin, at - begin));
  }
}

std::vector<std::string> SplitAtSpacesFromRight(absl::string_view text,
                                                int64_t most) {
  std::vector<std::string> parts;
  size_t end = text.size();
  while (true) {
    size_t next = end;
    while (end > 0 && IsSpace(TakeCharacterBefore(text, next))) end = next;
    if (end == 0) break;
    if (most >= 0 && static_cast<int64_t>(parts.size()) == most) {
      parts.push_back(
          Strip(text.substr(0, end), std::nullopt, {.right = false}));
      break;
    }
    const size_t last = end;
    for (next = end; end > 0; end = next) {
      if (IsSpace(TakeCharacterBefore(text, next))) break;
    }
    parts.emplace_back(text.substr(end, last - end));
  }
  std::reverse(parts.begin(), parts.end());
  return parts;
}

bool EndsLine(uint32_t code) {
  return (code >= 0x0A && code <= 0x0D) || (code >= 0x1C && code <= 0x1E) ||
         code == 0x85 || code == 0x2028 || code == 0x2029;
}

std::string TitleCharacter(uint32_t code) {
  std::string text;
  AppendCharacter(code, text);
  return Narrow(Wide(text).toTitle(nullptr, icu::Locale::getRoot()));
}

}  // namespace

uint32_t TakeCharacter(absl::string_view text, size_t& at) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(text.data());
  UChar32 code = 0;
  U8_NEXT(bytes, at, text.size(), code);
  return code < 0 ? 0xFFFD : static_cast<uint32_t>(code);
}

void AppendCharacter(uint32_t code, std::string& out) {
  char bytes[4];
  int32_t count = 0;
  U8_APPEND_UNSAFE(bytes, count, code);
  out.append(bytes, static_cast<size_t>(count));
}

int64_t CharacterCount(absl::string_view text) {
  return std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<uint8_t>(c) & 0xC0) != 0x80;
  });
}

std::vector<std::string> CharactersOf(absl::string_view text) {
  std::vector<std::string> characters;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    TakeCharacter(text, at);
    characters.emplace_back(text.substr(begin, at - begin));
  }
  return characters;
}

size_t PlaceOfCharacter(absl::string_view text, int64_t index) {
  size_t at = 0;
  for (; index > 0 && at < text.size(); --index) TakeCharacter(text, at);
  return at;
}

bool IsSpace(uint32_t code) {
  return (code >= 0x09 && code <= 0x0D) || (code >= 0x1C && code <= 0x20) ||
         code == 0x85 || code == 0xA0 || code == 0x1680 ||
         (code >= 0x2000 && code <= 0x200A) || code == 0x2028 ||
         code == 0x2029 || code == 0x202F || code == 0x205F || code == 0x3000;
}

std::string Strip(absl::string_view text,
                  const std::optional<std::string>& characters,
                  StripSides sides) {
  std::vector<uint32_t> set;
  if (characters.has_value()) {
    for (size_t at = 0; at < characters->size();) {
      set.push_back(TakeCharacter(*characters, at));
    }
  }
  const auto goes = [&](uint32_t code) {
    return characters.has_value()
               ? std::find(set.begin(), set.end(), code) != set.end()
               : IsSpace(code);
  };
  size_t begin = 0;
  size_t end = text.size();
  for (size_t next = begin; sides.left && begin < end; begin = next) {
    if (!goes(TakeCharacter(text, next))) break;
  }
  for (size_t next = end; sides.right && end > begin; end = next) {
    if (!goes(TakeCharacterBefore(text, next))) break;
  }
  return std::string(text.substr(begin, end - begin));
}

std::vector<std::string> Split(absl::string_view text,
                               const std::optional<std::string>& separator,
                               int64_t most) {
  if (!separator.has_value()) return SplitAtSpaces(text, most);
  std::vector<std::string> parts;
  size_t at = 0;
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    const size_t found = text.find(*separator, at);
    if (found == absl::string_view::npos) break;
    parts.emplace_back(text.substr(at, found - at));
    at = found + separator->size();
  }
  parts.emplace_back(text.substr(at));
  return parts;
}

std::vector<std::string> SplitFromRight(
    absl::string_view text, const std::optional<std::string>& separator,
    int64_t most) {
  if (!separator.has_value()) return SplitAtSpacesFromRight(text, most);
  std::vector<std::string> parts;
  size_t end = text.size();
  while (most < 0 || static_cast<int64_t>(parts.size()) < most) {
    if (end < separator->size()) break;
    const size_t found = text.rfind(*separator, end - separator->size());
    if (found == absl::string_view::npos) break;
    const size_t after = found + separator->size();
    parts.emplace_back(text.substr(after, end - after));
    end = found;
  }
  parts.emplace_back(text.substr(0, end));
  std::reverse(parts.begin(), parts.end());
  return parts;
}

std::vector<std::string> SplitLines(absl::string_view text, bool keep_ends) {
  std::vector<std::string> lines;
  size_t begin = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t here = at;
    const uint32_t code = TakeCharacter(text, at);
    if (!EndsLine(code)) continue;
    if (code == '\r' && at < text.size() && text[at] == '\n') ++at;
    lines.emplace_back(text.substr(begin, (keep_ends ? at : here) - begin));
    begin = at;
  }
  if (begin < text.size()) lines.emplace_back(text.substr(begin));
  return lines;
}

size_t CountParts(absl::string_view text,
                  const std::optional<std::string>& separator) {
  size_t count = 0;
  if (separator.has_value()) {
    for (size_t at = 0; at != absl::string_view::npos; ++count) {
      at = text.find(*separator, at);
      if (at != absl::string_view::npos) at += separator->size();
    }
    return count;
  }
  bool within = false;
  for (size_t at = 0; at < text.size();) {
    const bool is_space = IsSpace(TakeCharacter(text, at));
    count += !is_space && !within;
    within = !is_space;
  }
  return count;
}

size_t CountLines(absl::string_view text) {
  size_t count = 1;
  for (size_t at = 0; at < text.size();) {
    count += EndsLine(TakeCharacter(text, at));
  }
  return count;
}

std::optional<std::string> Replace(absl::string_view text,
                                   absl::string_view from, absl::string_view to,
                                   int64_t most, size_t bytes_max) {
  std::string out;
  size_t at = 0;
  for (int64_t done = 0; most < 0 || done < most; ++done) {
    if (from.empty() && done > 0) {
      // Between all characters, and at both ends.
      if (at == text.size()) break;
      const size_t begin = at;
      TakeCharacter(text, at);
      absl::StrAppend(&out, text.substr(begin, at - begin));
    }
    const size_t found = text.find(from, at);
    if (found == absl::string_view::npos) break;
    absl::StrAppend(&out, text.substr(at, found - at), to);
    if (out.size() > bytes_max) return std::nullopt;
    at = found + from.size();
  }
  absl::StrAppend(&out, text.substr(at));
  if (out.size() > bytes_max) return std::nullopt;
  return out;
}

std::string Upper(absl::string_view text) {
  return Narrow(Wide(text).toUpper(icu::Locale::getRoot()));
}

std::string Lower(absl::string_view text) {
  return Narrow(Wide(text).toLower(icu::Locale::getRoot()));
}

std::string Capitalize(absl::string_view text) {
  if (text.empty()) return "";
  size_t at = 0;
  const std::string first = TitleCharacter(TakeCharacter(text, at));
  return absl::StrCat(first, Lower(text.substr(at)));
}

std::string Title(absl::string_view text) {
  std::string out;
  bool within = false;
  for (size_t at = 0; at < text.size();) {
    const size_t begin = at;
    const uint32_t code = TakeCharacter(text, at);
    const absl::string_view here = text.substr(begin, at - begin);
    out += within ? Lower(here) : TitleCharacter(code);
    within = u_isULowercase(static_cast<UChar32>(code)) ||
             u_isUUppercase(static_cast<UChar32>(code)) ||
             u_charType(static_cast<UChar32>(code)) == U_TITLECASE_LETTER;
  }
  return out;
}

}  // namespace troupe::chat
