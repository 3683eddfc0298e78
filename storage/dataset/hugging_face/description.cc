#include "storage/dataset/hugging_face/description.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "proto/base/status.h"
#include "storage/checkpoint/strict_json.h"

namespace troupe {
namespace {

constexpr int kJsonDepthMax = 16;

// It inserts special tokens, or says where in the text tokens lie: of what is
// known nothing splits.
absl::Status CheckPostProcessor(const JsonPlace& place, int depth) {
  constexpr absl::string_view kKnown[] = {
      "TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel"};
  if (place.IsNull()) return absl::OkStatus();
  if (depth > kJsonDepthMax) return place.Error("has too many post-processors");
  ASSIGN_OR_RETURN(const std::string type, place.Type());
  if (std::count(std::begin(kKnown), std::end(kKnown), type) > 0) {
    return absl::OkStatus();
  }
  if (type != "Sequence") return place.UnknownType(type);
  RETURN_IF_ERROR(place.CheckKeys({"type", "processors"}));
  ASSIGN_OR_RETURN(const JsonPlace list, place.Field("processors"));
  ASSIGN_OR_RETURN(const std::vector<JsonPlace> parts, list.Elements());
  for (const JsonPlace& part : parts) {
    RETURN_IF_ERROR(CheckPostProcessor(part, depth + 1));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<TokenizerDescription> ParseTokenizerDescription(
    absl::string_view text) {
  ASSIGN_OR_RETURN(const nlohmann::json json, ParseJsonObject(text));
  const JsonPlace file(json, "");
  RETURN_IF_ERROR(file.CheckKeys({"version", "truncation", "padding",
                                  "added_tokens", "normalizer", "pre_tokenizer",
                                  "post_processor", "decoder", "model"}));
  ASSIGN_OR_RETURN(const std::string version, file.TextOr("version", "1.0"));
  if (version != "1.0") return file.Error("\"version\" is not 1.0");
  TokenizerDescription description;
  ASSIGN_OR_RETURN(const JsonPlace pre_tokenizer, file.Field("pre_tokenizer"));
  ASSIGN_OR_RETURN(description.pre_tokenizer,
                   PreTokenizer::Parse(pre_tokenizer));
  ASSIGN_OR_RETURN(const JsonPlace model, file.Field("model"));
  ASSIGN_OR_RETURN(
      description.model,
      MakeTokenModel(model, description.pre_tokenizer.byte_level()));
  ASSIGN_OR_RETURN(const JsonPlace added, file.Field("added_tokens"));
  ASSIGN_OR_RETURN(description.added,
                   ParseAddedTokens(added, description.model->vocabulary()));
  ASSIGN_OR_RETURN(const JsonPlace normalizer, file.Field("normalizer"));
  ASSIGN_OR_RETURN(description.normalizer, TextNormalizer::Parse(normalizer));
  ASSIGN_OR_RETURN(const JsonPlace decoder, file.Field("decoder"));
  ASSIGN_OR_RETURN(description.decoder, TokenDecoder::Parse(decoder));
  ASSIGN_OR_RETURN(const JsonPlace processor, file.Field("post_processor"));
  RETURN_IF_ERROR(CheckPostProcessor(processor, 0));
  return description;
}

}  // namespace troupe
