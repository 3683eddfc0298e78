#include "storage/dataset/hugging_face/pattern_syntax.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/utf8.h"

namespace troupe {
namespace {

using Kind = PatternItem::Kind;
using Alternatives = std::vector<PatternSequence>;

constexpr size_t kPatternBytesMax = 1 << 16;
constexpr int kPatternDepthMax = 32;

// The inside of classes.
constexpr absl::string_view kSpaces =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr absl::string_view kNoSpaces =
    R"(\x{0}-\x{8}\x{e}-\x{1f}\x{21}-\x{84}\x{86}-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{10ffff})";
// Of Latin-1 some numbers count, too.
constexpr absl::string_view kWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";

std::string CodeText(uint32_t code) { return absl::StrFormat("\\x{%x}", code); }

class Parser {
 public:
  explicit Parser(absl::string_view pattern)
      : pattern_(pattern), rest_(pattern) {}

  absl::StatusOr<Alternatives> ParseAll() {
    ASSIGN_OR_RETURN(Alternatives alternatives, ParseAlternatives(0, false));
    if (!rest_.empty()) return Error("a ')' that closes nothing");
    return alternatives;
  }

 private:
  absl::Status Error(absl::string_view message) const {
    return absl::InvalidArgumentError(absl::StrCat(
        "pattern, byte ", pattern_.size() - rest_.size(), ": ", message));
  }

  absl::StatusOr<Alternatives> ParseAlternatives(int depth, bool ignore_case) {
    if (depth > kPatternDepthMax) return Error("groups are too deep");
    Alternatives alternatives(1);
    while (!rest_.empty() && rest_[0] != ')') {
      if (absl::ConsumePrefix(&rest_, "|")) {
        alternatives.emplace_back();
        continue;
      }
      ASSIGN_OR_RETURN(PatternItem item, ParseItem(depth, ignore_case));
      RETURN_IF_ERROR(ParseQuantifier(item));
      alternatives.back().push_back(std::move(item));
    }
    return alternatives;
  }

  absl::StatusOr<PatternItem> ParseItem(int depth, bool ignore_case) {
    if (rest_[0] == '(') return ParseGroup(depth, ignore_case);
    PatternItem item;
    item.ignore_case = ignore_case;
    if (rest_[0] == '[') {
      ASSIGN_OR_RETURN(item.set, ParseClass());
      return item;
    }
    if (rest_[0] == '\\') {
      ASSIGN_OR_RETURN(const Escape escape, ParseEscape());
      item.set = escape.negated ? absl::StrCat("[^", escape.inside, "]")
                                : absl::StrCat("[", escape.inside, "]");
      if (escape.anchor) {
        item.kind = Kind::kAnchor;
        item.set = escape.inside;
      }
      return item;
    }
    if (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?') {
      return Error("a quantifier of nothing");
    }
    if (absl::ConsumePrefix(&rest_, ".")) {
      item.set = "[^\\x{a}]";
      return item;
    }
    for (const char anchor : {'^', '$'}) {  // of each line
      if (!absl::ConsumePrefix(&rest_, absl::string_view(&anchor, 1))) continue;
      item.kind = Kind::kAnchor;
      item.set = anchor == '^' ? "(?m:^)" : "(?m:$)";
      return item;
    }
    item.set = absl::StrCat("[", CodeText(TakeCharacter()), "]");
    return item;
  }

  uint32_t TakeCharacter() {
    const Character character = CharacterAt(rest_, 0);
    rest_.remove_prefix(character.bytes);
    return character.code;
  }

  absl::StatusOr<PatternItem> ParseGroup(int depth, bool ignore_case) {
    struct Opening {
      absl::string_view text;
      Kind kind;
      absl::string_view printed;
      bool ignore_case;
    };
    static constexpr Opening kOpenings[] = {
        {"(?:", Kind::kGroup, "(?:", false},
        {"(?i:", Kind::kGroup, "(?:", true},
        {"(?>", Kind::kGroup, "(?>", false},
        {"(?=", Kind::kLookAhead, "(?=", false},
        {"(?!", Kind::kLookAhead, "(?!", false},
        {"(?<=", Kind::kLookBehind, "(?<=", false},
        {"(?<!", Kind::kLookBehind, "(?<!", false},
    };
    PatternItem item;
    item.kind = Kind::kGroup;
    item.open = "(?:";
    bool known = false;
    for (const Opening& opening : kOpenings) {
      if (!absl::ConsumePrefix(&rest_, opening.text)) continue;
      item.kind = opening.kind;
      item.open = std::string(opening.printed);
      ignore_case |= opening.ignore_case;
      known = true;
      break;
    }
    if (!known) {
      if (absl::StartsWith(rest_, "(?")) {
        return Error(
            absl::StrCat("the group ", rest_.substr(0, 4), "... is not known"));
      }
      rest_.remove_prefix(1);
    }
    ASSIGN_OR_RETURN(item.alternatives,
                     ParseAlternatives(depth + 1, ignore_case));
    if (!absl::ConsumePrefix(&rest_, ")")) return Error("a ')' is missing");
    return item;
  }

  absl::Status ParseQuantifier(PatternItem& item) {
    if (rest_.empty()) return absl::OkStatus();
    bool counted = false;
    if (rest_[0] == '*' || rest_[0] == '+' || rest_[0] == '?') {
      item.quantifier = std::string(rest_.substr(0, 1));
      rest_.remove_prefix(1);
    } else if (rest_[0] == '{') {
      RETURN_IF_ERROR(ParseCounts(item));
      counted = true;
    } else {
      return absl::OkStatus();
    }
    if (item.kind != Kind::kSet && item.kind != Kind::kGroup) {
      return Error("a quantifier of something that consumes nothing");
    }
    if (absl::ConsumePrefix(&rest_, "?")) {
      // Of a fixed count Ruby takes this for "or not at all".
      if (counted && !absl::StrContains(item.quantifier, ',')) {
        return Error("a quantifier of a quantifier");
      }
      item.quantifier += '?';
    } else if (!counted && absl::ConsumePrefix(&rest_, "+")) {
      item.quantifier += '+';
    }
    if (!rest_.empty() && (rest_[0] == '*' || rest_[0] == '+' ||
                           rest_[0] == '?' || rest_[0] == '{')) {
      return Error("a quantifier of a quantifier");
    }
    return absl::OkStatus();
  }

  // {n}, {n,}, {n,m}, {,m}
  absl::Status ParseCounts(PatternItem& item) {
    const size_t end = rest_.find('}');
    if (end == absl::string_view::npos) return Error("a '}' is missing");
    const absl::string_view counts = rest_.substr(1, end - 1);
    size_t commas = 0;
    size_t digits = 0;
    for (const char byte : counts) {
      commas += byte == ',';
      digits += absl::ascii_isdigit(byte);
    }
    if (commas + digits != counts.size() || commas > 1 || digits == 0 ||
        digits > 8) {
      return Error("braces that hold no counts");
    }
    item.quantifier = counts[0] == ',' ? absl::StrCat("{0", counts, "}")
                                       : absl::StrCat("{", counts, "}");
    rest_.remove_prefix(end + 1);
    return absl::OkStatus();
  }

  struct Escape {
    std::string inside;  // of a class, or the anchor
    bool negated = false;
    bool anchor = false;
    bool single = false;  // one character
  };

  absl::StatusOr<Escape> ParseEscape() {
    rest_.remove_prefix(1);
    if (rest_.empty()) return Error("a backslash at the end");
    const char kind = rest_[0];
    switch (kind) {
      case 's':
      case 'S':
        rest_.remove_prefix(1);
        return Escape{std::string(kSpaces), kind == 'S'};
      case 'd':
      case 'D':
        rest_.remove_prefix(1);
        return Escape{"\\p{Nd}", kind == 'D'};
      case 'w':
      case 'W':
        rest_.remove_prefix(1);
        return Escape{std::string(kWord), kind == 'W'};
      case 'p':
      case 'P':
        return ParseProperty();
      case 'A':
      case 'z':
        rest_.remove_prefix(1);
        return Escape{absl::StrCat("\\", std::string(1, kind)), false, true};
      case 'x':
      case 'u':
        return ParseHexadecimal();
      default:
        break;
    }
    static constexpr std::pair<char, uint32_t> kControls[] = {
        {'n', '\n'}, {'r', '\r'}, {'t', '\t'},
        {'f', '\f'}, {'v', '\v'}, {'e', 0x1B}};
    for (const auto& [letter, code] : kControls) {
      if (kind != letter) continue;
      rest_.remove_prefix(1);
      return Escape{CodeText(code), false, false, true};
    }
    if (absl::ascii_isalnum(kind)) {
      return Error(
          absl::StrCat("the escape \\", std::string(1, kind), " is not known"));
    }
    return Escape{CodeText(TakeCharacter()), false, false, true};
  }

  absl::StatusOr<Escape> ParseProperty() {
    const size_t end = rest_.find('}');
    if (rest_.size() < 2 || rest_[1] != '{' || end == absl::string_view::npos) {
      return Error("a property without braces");
    }
    const absl::string_view name = rest_.substr(2, end - 2);
    bool negated = rest_[0] == 'P';
    absl::string_view plain = name;
    if (absl::ConsumePrefix(&plain, "^")) negated = !negated;
    if (plain.empty()) return Error("a property without a name");
    for (const char byte : plain) {
      if (!absl::ascii_isalnum(byte) && byte != '_') {
        return Error("a property's name that is none");
      }
    }
    rest_.remove_prefix(end + 1);
    return Escape{absl::StrCat(negated ? "\\P{" : "\\p{", plain, "}")};
  }

  // \xHH, \x{H...}, \uHHHH
  absl::StatusOr<Escape> ParseHexadecimal() {
    absl::string_view digits;
    size_t bytes = 0;
    if (rest_[0] == 'x' && rest_.size() > 1 && rest_[1] == '{') {
      const size_t end = rest_.find('}');
      if (end == absl::string_view::npos) return Error("a '}' is missing");
      digits = rest_.substr(2, end - 2);
      bytes = end + 1;
    } else {
      digits = rest_.substr(1, rest_[0] == 'x' ? 2 : 4);
      bytes = 1 + digits.size();
    }
    uint32_t code = 0;
    for (const char digit : digits) {
      if (!absl::ascii_isxdigit(digit)) return Error("no hexadecimal number");
      code = code * 16 + (absl::ascii_isdigit(digit)
                              ? digit - '0'
                              : absl::ascii_tolower(digit) - 'a' + 10);
    }
    // A byte of more than 7 bits is a part of a character to Oniguruma.
    const bool is_byte = rest_[0] == 'x' && rest_[1] != '{';
    if (digits.empty() || digits.size() > 6 || code > 0x10FFFF ||
        (code >= 0xD800 && code < 0xE000) || (is_byte && code > 0x7F)) {
      return Error("a number that is no character");
    }
    rest_.remove_prefix(bytes);
    return Escape{CodeText(code), false, false, true};
  }

  absl::StatusOr<std::string> ParseClass() {
    rest_.remove_prefix(1);
    std::string out = absl::ConsumePrefix(&rest_, "^") ? "[^" : "[";
    if (absl::StartsWith(rest_, "]")) return Error("a class without content");
    bool after_single = false;  // what may begin a range
    while (!absl::StartsWith(rest_, "]")) {
      if (rest_.empty()) return Error("a ']' is missing");
      if (rest_[0] == '[') return Error("a class within a class is not known");
      if (absl::StartsWith(rest_, "&&")) {
        return Error("an intersection of classes is not known");
      }
      if (after_single && rest_[0] == '-' && rest_.size() > 1 &&
          rest_[1] != ']') {
        rest_.remove_prefix(1);
        ASSIGN_OR_RETURN(const Escape last, ParseMember());
        if (!last.single) return Error("a range that ends with a class");
        absl::StrAppend(&out, "-", last.inside);
        after_single = false;
        continue;
      }
      ASSIGN_OR_RETURN(const Escape member, ParseMember());
      out += member.inside;
      after_single = member.single;
    }
    rest_.remove_prefix(1);
    return out + "]";
  }

  absl::StatusOr<Escape> ParseMember() {
    if (rest_.empty()) return Error("a ']' is missing");
    if (rest_[0] != '\\') {
      return Escape{CodeText(TakeCharacter()), false, false, true};
    }
    const bool spaces = absl::StartsWith(rest_, "\\S");
    const bool digits = absl::StartsWith(rest_, "\\D");
    ASSIGN_OR_RETURN(Escape escape, ParseEscape());
    if (escape.anchor) return Error("an anchor within a class");
    if (!escape.negated) return escape;
    if (spaces) return Escape{std::string(kNoSpaces)};
    if (digits) return Escape{"\\P{Nd}"};
    return Error("the escape \\W is not known within a class");
  }

  const absl::string_view pattern_;
  absl::string_view rest_;
};

void PrintItem(const PatternItem& item, std::string& out) {
  if (item.kind == Kind::kSet || item.kind == Kind::kAnchor) {
    if (item.ignore_case && item.kind == Kind::kSet) {
      absl::StrAppend(&out, "(?i:", item.set, ")", item.quantifier);
    } else {
      absl::StrAppend(&out, item.set, item.quantifier);
    }
    return;
  }
  absl::StrAppend(&out, item.open, PrintPattern(item.alternatives), ")",
                  item.quantifier);
}

}  // namespace

absl::StatusOr<std::vector<PatternSequence>> ParsePattern(
    absl::string_view pattern) {
  if (pattern.size() > kPatternBytesMax) {
    return absl::InvalidArgumentError(
        absl::StrCat("pattern: has more than ", kPatternBytesMax, " bytes"));
  }
  std::string storage;
  if (ValidText(pattern, storage).data() != pattern.data()) {
    return absl::InvalidArgumentError("pattern: is not UTF-8");
  }
  return Parser(pattern).ParseAll();
}

std::string PrintPattern(const std::vector<PatternSequence>& alternatives) {
  std::string out;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    if (i > 0) out += '|';
    for (const PatternItem& item : alternatives[i]) PrintItem(item, out);
  }
  return out;
}

}  // namespace troupe
