#include "storage/dataset/text_check.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/storage/temp_dir.h"

namespace troupe {
namespace {

class TextCheck : public testing::Test {
 protected:
  absl::Status Check(const std::string& content,
                     const std::string& name = "file") {
    WriteText(dir_.File(name), content);
    return CheckText(dir_.File(name));
  }
  bool IsRefused(const std::string& content, const char* as,
                 const char* advice) {
    return Fails(Check(content), absl::StatusCode::kInvalidArgument,
                 {dir_.File("file"), as, advice});
  }

  TempDir dir_;
};

TEST_F(TextCheck, Texts) {
  for (const char* text :
       {"", "a", "One line\n", "\xef\xbb\xbf with a mark",
        "\xe6\x9d\xb1\xe4\xba\xac\xe3\x81\xae\xe4\xba\xba",
        "PARIS is no Parquet", "BZh and GGU", "{looks: like JSON}\n",
        "{\"a\": 1}\nis how JSON begins\n", "[1, 2]\n3\n"}) {
    EXPECT_TRUE(Check(text).ok()) << Check(text);
  }
  // A few characters that are broken.
  EXPECT_TRUE(Check(std::string(1000, 'a') + "\xff\xe9").ok());
}

TEST_F(TextCheck, FormatsAreKnownByTheirBytes) {
  EXPECT_TRUE(IsRefused("\x1f\x8b\x08 ...", "gzip", "gunzip -k"));
  EXPECT_TRUE(IsRefused("\x28\xb5\x2f\xfd ...", "zstd", "zstd -d"));
  EXPECT_TRUE(IsRefused("BZh91AY&SY ...", "bzip2", "bunzip2"));
  EXPECT_TRUE(IsRefused("PK\x03\x04 ...", "zip archive", "unpack it"));
  EXPECT_TRUE(IsRefused("PAR1 ...", "Parquet", "troupe.parquet"));
  EXPECT_TRUE(IsRefused("%PDF-1.4", "PDF", "pdftotext"));
  EXPECT_TRUE(IsRefused("TROUPETK ...", "token file already", "data.tokens"));
  EXPECT_TRUE(IsRefused(std::string(257, 'n') + "ustar", "tar", "tar -xf"));
  EXPECT_TRUE(
      IsRefused("\xff\xfe"
                "a",
                "UTF-16", "iconv -f UTF-16"));
  std::string safetensors(8, '\0');
  safetensors[0] = 32;
  EXPECT_TRUE(IsRefused(safetensors + "{\"weight\": ...", "safetensors",
                        "give a text"));
}

TEST_F(TextCheck, ZeroBytesAreFoundFarIn) {
  std::string content(3 << 20, 'x');
  EXPECT_TRUE(Check(content).ok());
  content.back() = '\0';
  EXPECT_TRUE(IsRefused(content, "byte 3145727 is zero", "--any-content"));
}

TEST_F(TextCheck, OtherEncodingsAreNoUtf8) {
  std::string latin1;
  while (latin1.size() < 10'000) latin1 += "M\xe4rchenk\xf6nig ";
  EXPECT_TRUE(IsRefused(latin1, "not in UTF-8", "iconv -f latin1"));
  // However it is cut into samples.
  std::string cyrillic;
  while (cyrillic.size() < 3 << 20) cyrillic += "\xd0\xbf\xd1\x80\xd0\xb8 ";
  EXPECT_TRUE(Check(cyrillic).ok());
}

TEST_F(TextCheck, JsonByItsName) {
  EXPECT_TRUE(Fails(Check("{\"text\": \"a\"}\n", "B.JSON"),
                    absl::StatusCode::kInvalidArgument,
                    {"B.JSON", "named as JSON", "jq -c"}));
}

TEST_F(TextCheck, JsonLinesByTheirContent) {
  const std::string line = "{\"text\": \"One story.\", \"id\": 7}";
  for (const std::string& content :
       {line, line + "\n", line + "\r\n\n" + line + "\n",
        line + "\n{\"text\": \"" + std::string(1 << 20, 'x')}) {
    EXPECT_TRUE(
        IsRefused(content, "first lines are JSON objects", "--format jsonl"));
  }
}

// Over several lines, or in a line that is not read to its end.
TEST_F(TextCheck, JsonDocumentsByTheirContent) {
  for (const std::string& content : {
           std::string("[{\"text\": \"a\"}, {\"text\": \"b\"}]\n"),
           std::string("[\n  {\n    \"text\": \"a\"\n  }\n]"),
           std::string("\xef\xbb\xbf{\n  \"data\": [\"a\", 1.5, null]\n}\n"),
           "{\"text\": \"" + std::string(1 << 20, 'x'),
           "[{\"id\": 1, \"text\": \"" + std::string(1 << 20, 'x') + "\"}]",
       }) {
    EXPECT_TRUE(IsRefused(content, "JSON (an object", "jq -c '.[]'"));
  }
  for (const char* text :
       {"[1, 2, 3]\n", "[Enter Hamlet]\n{aside} Words.", "{\"a\": 1} is JSON",
        "{\"a\": 1}x", "[\"a quotation\"]\n{\"b\": 1}", "{", "["}) {
    EXPECT_TRUE(Check(text).ok()) << Check(text);
  }
}

TEST_F(TextCheck, AnAbsentFileIsNamed) {
  EXPECT_TRUE(
      Fails(CheckText("/no/such"), absl::StatusCode::kNotFound, {"/no/such"}));
}

}  // namespace
}  // namespace troupe
