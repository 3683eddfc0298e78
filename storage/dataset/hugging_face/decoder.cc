#include "storage/dataset/hugging_face/decoder.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"
#include "proto/base/status.h"
#include "storage/dataset/hugging_face/characters.h"
#include "storage/dataset/hugging_face/pattern_field.h"

namespace troupe {
namespace {

constexpr size_t kStepsMax = 256;
constexpr int kDecoderDepthMax = 16;

// "<0x0A>" is a byte.
void DecodeByte(std::string& token, bool is_first) {
  if (token.size() != 6 || !absl::StartsWith(token, "<0x") || token[5] != '>') {
    return;
  }
  int byte = 0;
  for (const char digit : token.substr(3, 2)) {
    if (!absl::ascii_isxdigit(digit)) return;
    byte = byte * 16 + (absl::ascii_isdigit(digit)
                            ? digit - '0'
                            : absl::ascii_tolower(digit) - 'a' + 10);
  }
  token.assign(1, static_cast<char>(byte));
}

void DecodeByteLevel(std::string& token, bool is_first) {
  token = CharactersAsBytes(token);
}

void AddSpace(std::string& token, bool is_first) {
  if (!is_first) token.insert(0, " ");
}

// Spaces that English text does not have, one rule after another.
void CleanUp(std::string& token) {
  static constexpr std::pair<absl::string_view, absl::string_view> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& rule : kRules) token = absl::StrReplaceAll(token, {rule});
}

}  // namespace

struct TokenDecoderParser {
  TokenDecoder decoder;
  bool fused = false;  // what follows is done to the whole text

  absl::Status Add(const JsonPlace& place, int depth) {
    if (depth > kDecoderDepthMax || decoder.steps_.size() >= kStepsMax) {
      return place.Error("has too many decoders");
    }
    ASSIGN_OR_RETURN(const std::string type, place.Type());
    if (type == "Sequence") {
      RETURN_IF_ERROR(place.CheckKeys({"type", "decoders"}));
      ASSIGN_OR_RETURN(const JsonPlace list, place.Field("decoders"));
      ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, list.Elements());
      for (const JsonPlace& part : parts) RETURN_IF_ERROR(Add(part, depth + 1));
      return absl::OkStatus();
    }
    if (type == "Strip") return AddStrip(place);
    if (type == "Fuse") {
      fused = true;
      return place.CheckKeys({"type"});
    }
    if (fused) return place.Error("nothing but Strip may follow Fuse");
    if (type == "ByteLevel") return AddByteLevel(place);
    if (type == "ByteFallback") {
      decoder.steps_.push_back(&DecodeByte);
      return place.CheckKeys({"type"});
    }
    if (type == "Metaspace") return AddMetaspace(place);
    if (type == "Replace") return AddReplace(place);
    if (type == "WordPiece") return AddWordPiece(place);
    return place.UnknownType(type);
  }

  absl::Status AddByteLevel(const JsonPlace& place) {
    decoder.steps_.push_back(&DecodeByteLevel);
    fused = true;  // it makes one text of all tokens
    return place.CheckKeys(
        {"type", "add_prefix_space", "trim_offsets", "use_regex"});
  }

  absl::Status AddStrip(const JsonPlace& place) {
    RETURN_IF_ERROR(place.CheckKeys({"type", "content", "start", "stop"}));
    ASSIGN_OR_RETURN(const uint32_t code, place.Character("content"));
    ASSIGN_OR_RETURN(const int64_t start, place.Integer("start", 0, 1 << 20));
    ASSIGN_OR_RETURN(const int64_t stop, place.Integer("stop", 0, 1 << 20));
    const std::string content = CharacterText(code);
    if (!fused) {
      decoder.steps_.push_back([=](std::string& token, bool is_first) {
        absl::string_view rest = token;
        for (int64_t i = 0; i < start; ++i) absl::ConsumePrefix(&rest, content);
        for (int64_t i = 0; i < stop; ++i) absl::ConsumeSuffix(&rest, content);
        token = std::string(rest);
      });
      return absl::OkStatus();
    }
    if (stop != 0) {
      return place.Error("what is cut off a whole text's end is not known");
    }
    if (decoder.stripped_max_ != 0) return place.Error("comes twice");
    decoder.stripped_ = content;
    decoder.stripped_max_ = start;
    return absl::OkStatus();
  }

  absl::Status AddMetaspace(const JsonPlace& place) {
    RETURN_IF_ERROR(
        place.CheckKeys({"type", "replacement", "str_rep", "add_prefix_space",
                         "prepend_scheme", "split"}));
    ASSIGN_OR_RETURN(const uint32_t code, place.Character("replacement"));
    ASSIGN_OR_RETURN(const std::string scheme,
                     place.TextOr("prepend_scheme", "always"));
    ASSIGN_OR_RETURN(const bool adds, place.FlagOr("add_prefix_space", true));
    const bool prepends = adds && scheme != "never";
    decoder.steps_.push_back([prepends, symbol = CharacterText(code)](
                                 std::string& token, bool is_first) {
      const char* const space = is_first && prepends ? "" : " ";
      token = absl::StrReplaceAll(token, {{symbol, space}});
    });
    return absl::OkStatus();
  }

  absl::Status AddReplace(const JsonPlace& place) {
    RETURN_IF_ERROR(place.CheckKeys({"type", "pattern", "content"}));
    ASSIGN_OR_RETURN(const Pattern pattern, PatternField(place));
    ASSIGN_OR_RETURN(const std::string content, place.Text("content"));
    ASSIGN_OR_RETURN(const JsonPlace field, place.Field("pattern"));
    if (field.value().contains("String")) {
      ASSIGN_OR_RETURN(const std::string text, field.Text("String"));
      decoder.steps_.push_back([=](std::string& token, bool is_first) {
        token = absl::StrReplaceAll(token, {{text, content}});
      });
      return absl::OkStatus();
    }
    decoder.steps_.push_back([=](std::string& token, bool is_first) {
      // A byte that an earlier step made is no text.
      std::string storage;
      if (ValidText(token, storage).data() != token.data()) return;
      PatternScratch scratch;
      std::string out;
      size_t done = 0;
      const absl::Status matched =
          pattern.ForEachMatch(token, scratch, [&](size_t begin, size_t end) {
            absl::StrAppend(&out, token.substr(done, begin - done), content);
            done = end;
          });
      if (matched.ok()) token = out + token.substr(done);
    });
    return absl::OkStatus();
  }

  absl::Status AddWordPiece(const JsonPlace& place) {
    RETURN_IF_ERROR(place.CheckKeys({"type", "prefix", "cleanup"}));
    ASSIGN_OR_RETURN(const std::string prefix, place.Text("prefix"));
    ASSIGN_OR_RETURN(const bool clean, place.Flag("cleanup"));
    decoder.steps_.push_back([=](std::string& token, bool is_first) {
      if (!is_first) {
        absl::string_view rest = token;
        token = absl::ConsumePrefix(&rest, prefix) ? std::string(rest)
                                                   : absl::StrCat(" ", token);
      }
      if (clean) CleanUp(token);
    });
    return absl::OkStatus();
  }
};

absl::StatusOr<TokenDecoder> TokenDecoder::Parse(const JsonPlace& place) {
  TokenDecoderParser parser;
  if (place.IsNull()) {
    parser.decoder.steps_.push_back(&AddSpace);
  } else {
    RETURN_IF_ERROR(parser.Add(place, 0));
  }
  return std::move(parser.decoder);
}

std::string TokenDecoder::Apply(absl::string_view token, bool is_first) const {
  std::string text(token);
  for (const Step& step : steps_) step(text, is_first);
  return text;
}

}  // namespace troupe
