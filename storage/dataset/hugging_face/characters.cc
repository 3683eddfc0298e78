#include "storage/dataset/hugging_face/characters.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

constexpr absl::string_view kReplacement = "\xEF\xBF\xBD";

bool InCategories(uint32_t code, uint32_t mask) {
  return (U_GET_GC_MASK(static_cast<UChar32>(code)) & mask) != 0;
}

// The library's tables of some classes are those of an older Unicode.
bool IsOlderThan(uint32_t code, uint8_t version) {
  UVersionInfo age;
  u_charAge(static_cast<UChar32>(code), age);
  return age[0] > 0 && age[0] < version;
}

// Bytes at the beginning that are valid.
size_t ValidPrefix(absl::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight;
    if (at + 8 <= text.size()) {
      std::memcpy(&eight, text.data() + at, 8);
      if ((eight & 0x8080808080808080u) == 0) {
        at += 8;
        continue;
      }
    }
    const size_t bytes = CharacterBytes(text.substr(at, 4));
    if (bytes == 0) return at;
    at += bytes;
  }
  return at;
}

// Bytes of the maximal part that is the beginning of a character but no more:
// at least 1. Requires that `text` begins with no character.
size_t InvalidBytes(absl::string_view text) {
  // The longest beginning that some bytes could complete.
  for (size_t bytes = std::min<size_t>(3, text.size()); bytes > 1; --bytes) {
    std::string completed(text.substr(0, bytes));
    while (completed.size() < 4) {
      completed.push_back('\x80');
      if (CharacterBytes(completed) == completed.size()) return bytes;
    }
  }
  return 1;
}

struct ByteTables {
  std::array<uint16_t, 256> character;
  std::array<int16_t, 512> byte;
};

constexpr ByteTables MakeByteTables() {
  ByteTables tables{};
  for (int16_t& byte : tables.byte) byte = -1;
  uint16_t next = 256;
  for (int b = 0; b < 256; ++b) {
    const bool printed =
        (b >= '!' && b <= '~') || (b >= 0xA1 && b <= 0xAC) || b >= 0xAE;
    const uint16_t code = printed ? static_cast<uint16_t>(b) : next++;
    tables.character[b] = code;
    tables.byte[code] = static_cast<int16_t>(b);
  }
  return tables;
}

constexpr ByteTables kByteTables = MakeByteTables();

}  // namespace

Character CharacterAt(absl::string_view text, size_t at) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<uint8_t>(text[at + i]));
  };
  const uint32_t first = byte(0);
  if (first < 0x80) return {first, 1};
  if (first < 0xE0) return {(first & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (first < 0xF0) {
    return {(first & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  return {(first & 0x07) << 18 | (byte(1) & 0x3F) << 12 |
              (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

Character CharacterBefore(absl::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && (text[begin] & 0xC0) == 0x80) --begin;
  return CharacterAt(text, begin);
}

void AppendCharacter(uint32_t code, std::string& out) {
  const auto tail = [&](int shift) {
    out.push_back(static_cast<char>(0x80 | (code >> shift & 0x3F)));
  };
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    out.push_back(static_cast<char>(0xC0 | code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    out.push_back(static_cast<char>(0xE0 | code >> 12));
    tail(6);
    tail(0);
  } else {
    out.push_back(static_cast<char>(0xF0 | code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

std::string CharacterText(uint32_t code) {
  std::string text;
  AppendCharacter(code, text);
  return text;
}

absl::string_view ValidText(absl::string_view text, std::string& storage) {
  size_t valid = ValidPrefix(text);
  if (valid == text.size()) return text;
  storage.clear();
  while (true) {
    storage.append(text.data(), valid);
    text.remove_prefix(valid);
    if (text.empty()) return storage;
    storage.append(kReplacement.data(), kReplacement.size());
    text.remove_prefix(InvalidBytes(text));
    valid = ValidPrefix(text);
  }
}

bool IsWhitespace(uint32_t code) {
  if (code < 0x80) return code == ' ' || (code >= '\t' && code <= '\r');
  return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_WHITE_SPACE);
}

bool IsNumeric(uint32_t code) {
  if (code < 0x80) return code >= '0' && code <= '9';
  return InCategories(code, U_GC_N_MASK);
}

bool IsPunctuation(uint32_t code) {
  if (code < 0x80) return u_isgraph(code) && !u_isalnum(code);
  // Two have become letters since.
  return (InCategories(code, U_GC_P_MASK) && IsOlderThan(code, 9)) ||
         code == 0x166D || code == 0x111C9;
}

bool IsWord(uint32_t code) {
  return InCategories(code, U_GC_M_MASK | U_GC_ND_MASK | U_GC_PC_MASK) ||
         u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_ALPHABETIC) ||
         u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_JOIN_CONTROL);
}

bool IsControl(uint32_t code) {
  return InCategories(code, U_GC_CC_MASK | U_GC_CF_MASK | U_GC_CO_MASK) &&
         IsOlderThan(code, 9);
}

bool IsMark(uint32_t code) {
  return (InCategories(code, U_GC_M_MASK) && IsOlderThan(code, 10)) ||
         code == 0x1CF2 || code == 0x1CF3;
}
bool IsNonspacingMark(uint32_t code) {
  return (InCategories(code, U_GC_MN_MASK) && IsOlderThan(code, 9)) ||
         code == 0x1734;
}
bool IsLetter(uint32_t code) { return InCategories(code, U_GC_L_MASK); }

bool IsIdeograph(uint32_t code) {
  const auto within = [code](uint32_t first, uint32_t last) {
    return code >= first && code <= last;
  };
  return within(0x4E00, 0x9FFF) || within(0x3400, 0x4DBF) ||
         within(0x20000, 0x2A6DF) || within(0x2A700, 0x2B73F) ||
         within(0x2B740, 0x2B81F) || within(0x2B920, 0x2CEAF) ||
         within(0xF900, 0xFAFF) || within(0x2F800, 0x2FA1F);
}

void AppendLowercase(uint32_t code, std::string& out) {
  constexpr uint32_t kCapitalIWithDot = 0x130;  // the one that becomes two
  if (code == kCapitalIWithDot) {
    out.append("i\xCC\x87");
  } else {
    AppendCharacter(
        static_cast<uint32_t>(u_tolower(static_cast<UChar32>(code))), out);
  }
}

uint32_t ByteCharacter(uint8_t byte) { return kByteTables.character[byte]; }

int ByteOfCharacter(uint32_t code) {
  return code < kByteTables.byte.size() ? kByteTables.byte[code] : -1;
}

std::string BytesAsCharacters(absl::string_view text) {
  std::string out;
  for (const char byte : text) {
    AppendCharacter(ByteCharacter(static_cast<uint8_t>(byte)), out);
  }
  return out;
}

std::string CharactersAsBytes(absl::string_view text) {
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const Character character = CharacterAt(text, at);
    const int byte = ByteOfCharacter(character.code);
    if (byte < 0) return std::string(text);
    out.push_back(static_cast<char>(byte));
    at += character.bytes;
  }
  return out;
}

}  // namespace troupe
