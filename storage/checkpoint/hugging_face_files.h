// The files of a Hugging Face directory besides its weights: what travels with
// a model that is imported, trained and exported again.
#ifndef TROUPE_STORAGE_CHECKPOINT_HUGGING_FACE_FILES_H_
#define TROUPE_STORAGE_CHECKPOINT_HUGGING_FACE_FILES_H_

namespace troupe {

inline constexpr char kHuggingFaceConfig[] = "config.json";

inline constexpr const char* kHuggingFaceFiles[] = {
    kHuggingFaceConfig,    "generation_config.json",  "tokenizer.json",
    "tokenizer.model",     "tokenizer_config.json",   "vocab.json",
    "merges.txt",          "special_tokens_map.json", "added_tokens.json",
    "chat_template.jinja",
};

}  // namespace troupe

#endif  // TROUPE_STORAGE_CHECKPOINT_HUGGING_FACE_FILES_H_
