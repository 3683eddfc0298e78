// A part of a corpus that stands for all of it, to train a tokenizer on. The
// same for the same files.
#ifndef TROUPE_STORAGE_CORPUS_CORPUS_SAMPLE_H_
#define TROUPE_STORAGE_CORPUS_CORPUS_SAMPLE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/corpus/corpus_files.h"
#include "storage/corpus/encode_part.h"

namespace troupe {

// One text that is not compressed: as storage/dataset/text_sample.h. Else the
// documents at the beginning of each file, as much of it as its share of all
// bytes on the disk, a line's end behind each; bad lines are left out.
// InvalidArgument for the standard input, which can be read once.
absl::StatusOr<std::string> SampleCorpus(const std::vector<CorpusFile>& files,
                                         const PartRules& rules,
                                         uint64_t bytes_max);

}  // namespace troupe

#endif  // TROUPE_STORAGE_CORPUS_CORPUS_SAMPLE_H_
