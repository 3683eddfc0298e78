// Trains SentencePiece models of the kind that Llama's is: every byte has a
// piece, so that any text can be written; text stays as it is (no NFKC, no
// spaces removed); digits are pieces of their own; id 0 is <unk>, 1 <s>, 2
// </s>. The same text gives the same model. The library's headers and absl's
// cannot meet in one file, hence no absl here.
#ifndef TROUPE_CLIENTS_CLI_SENTENCEPIECE_TRAIN_MODEL_H_
#define TROUPE_CLIENTS_CLI_SENTENCEPIECE_TRAIN_MODEL_H_

#include <string>
#include <string_view>

namespace troupe {

struct TrainModelOptions {
  int vocab_size = 8000;
  std::string model_type = "unigram";  // or bpe
};

struct TrainedModel {
  std::string bytes;
  std::string error;  // set: what the library says, and what to do
};
// Fails where the text does not hold that number of pieces.
TrainedModel TrainModel(std::string_view text,
                        const TrainModelOptions& options);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_CLI_SENTENCEPIECE_TRAIN_MODEL_H_
