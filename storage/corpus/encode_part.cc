#include "storage/corpus/encode_part.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/corpus/json_field.h"

namespace troupe {
namespace {

absl::Status CheckLineLength(const PartRules& rules, absl::string_view line) {
  if (line.size() <= rules.line_bytes_max) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "the line has ", line.size(), " bytes, more than ", rules.line_bytes_max,
      "; break it into shorter ones, or raise --max-line-mib"));
}

// The text of a line; it is kept in `buffer` where it is not the line itself.
absl::StatusOr<absl::string_view> TextOfLine(TextFormat format,
                                             const PartRules& rules,
                                             absl::string_view line,
                                             std::string& buffer) {
  RETURN_IF_ERROR(CheckLineLength(rules, line));
  if (format == TextFormat::kLines) return line;
  ASSIGN_OR_RETURN(buffer, JsonTextField(line, rules.field));
  return absl::string_view(buffer);
}

absl::string_view AdviceFor(TextFormat format, const PartRules& rules) {
  if (format != TextFormat::kJsonl) return "";
  if (rules.records != nullptr) {
    return "; mend the line, or leave such lines out with --skip-bad-lines";
  }
  return "; mend the line, name another --field, or leave such lines out with "
         "--skip-bad-lines";
}

absl::Status EncodeDocument(const Tokenizer& tokenizer, absl::string_view text,
                            EncodedPart& out) {
  const size_t had = out.ids.size();
  RETURN_IF_ERROR(tokenizer.Encode(text, out.ids));
  if (out.ids.size() == had) return absl::OkStatus();
  if (tokenizer.eos_id().has_value()) out.ids.push_back(*tokenizer.eos_id());
  out.ends.push_back(out.ids.size());
  return absl::OkStatus();
}

absl::Status EncodeText(const Tokenizer& tokenizer, const TextPart& part,
                        EncodedPart& out) {
  RETURN_IF_ERROR(Annotate(part.begins
                               ? tokenizer.Encode(part.text, out.ids)
                               : tokenizer.EncodeLater(part.text, out.ids),
                           part.file->path));
  const bool is_empty = part.begins && part.text.empty();
  if (!part.ends || is_empty) return absl::OkStatus();
  if (tokenizer.eos_id().has_value()) out.ids.push_back(*tokenizer.eos_id());
  out.ends.push_back(out.ids.size());
  return absl::OkStatus();
}

// The lines of a part that are not empty, without their ends. `each` says
// whether a line is bad, or, of another one, what ends all; no advice helps
// there.
struct LineOutcome {
  absl::Status bad;
  absl::Status failed;
};
absl::StatusOr<int64_t> ForEachLine(
    const PartRules& rules, const TextPart& part,
    absl::FunctionRef<LineOutcome(absl::string_view line)> each) {
  const TextFormat format = part.file->format;
  int64_t number = part.first_line;
  int64_t skipped = 0;
  for (absl::string_view left = part.text; !left.empty(); ++number) {
    absl::string_view line = left.substr(0, left.find('\n'));
    left.remove_prefix(std::min(left.size(), line.size() + 1));
    absl::ConsumeSuffix(&line, "\r");
    const bool is_empty = format == TextFormat::kJsonl
                              ? absl::StripAsciiWhitespace(line).empty()
                              : line.empty();
    if (is_empty) continue;
    const LineOutcome outcome = each(line);
    const std::string place = absl::StrCat(part.file->path, ":", number);
    RETURN_IF_ERROR(Annotate(outcome.failed, place));
    if (outcome.bad.ok()) continue;
    if (!rules.skip_bad_lines) {
      return absl::Status(outcome.bad.code(),
                          absl::StrCat(place, ": ", outcome.bad.message(),
                                       AdviceFor(format, rules)));
    }
    ++skipped;
  }
  return skipped;
}

// A record of a line, behind those that `out` has.
absl::Status EncodeRecord(const PartRules& rules, absl::string_view line,
                          EncodedPart& out) {
  RETURN_IF_ERROR(CheckLineLength(rules, line));
  const size_t had = out.ids.size();
  RETURN_IF_ERROR(rules.records->Encode(line, out.ids, out.counts));
  const size_t tokens = out.ids.size() - had;
  if (rules.sequence_length == 0 || tokens <= rules.sequence_length) {
    out.ends.push_back(out.ids.size());
    return absl::OkStatus();
  }
  out.ids.resize(had);
  out.counts.resize(had);
  return absl::InvalidArgumentError(
      absl::StrCat("the record has ", tokens, " tokens, more than ",
                   "--sequence-length ", rules.sequence_length));
}

}  // namespace

absl::StatusOr<int64_t> ForEachDocument(
    const PartRules& rules, const TextPart& part,
    absl::FunctionRef<absl::Status(absl::string_view text)> each) {
  std::string buffer;
  return ForEachLine(rules, part, [&](absl::string_view line) -> LineOutcome {
    const absl::StatusOr<absl::string_view> text =
        TextOfLine(part.file->format, rules, line, buffer);
    if (!text.ok()) return {.bad = text.status()};
    return {.failed = each(*text)};
  });
}

absl::Status EncodeTextPart(const Tokenizer& tokenizer, const PartRules& rules,
                            const TextPart& part, EncodedPart& out) {
  if (part.file->format == TextFormat::kText) {
    return EncodeText(tokenizer, part, out);
  }
  absl::StatusOr<int64_t> skipped;
  if (rules.records != nullptr) {
    skipped = ForEachLine(rules, part, [&](absl::string_view line) {
      const absl::Status status = EncodeRecord(rules, line, out);
      // Without a template no conversation is encoded: the line is not why.
      return absl::IsNotFound(status) ? LineOutcome{.failed = status}
                                      : LineOutcome{.bad = status};
    });
  } else {
    skipped = ForEachDocument(rules, part, [&](absl::string_view text) {
      return EncodeDocument(tokenizer, text, out);
    });
  }
  RETURN_IF_ERROR(skipped.status());
  out.skipped = *skipped;
  return absl::OkStatus();
}

}  // namespace troupe
