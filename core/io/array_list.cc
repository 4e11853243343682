// Long because reading and writing a record go through the same fields.
#include "core/io/array_list.h"

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "core/base/annotate.h"
#include "core/io/array_elements.h"
#include "core/io/file.h"
#include "core/io/params.h"

namespace interp {
namespace {

constexpr uint64_t kListMagic = 0x112;
constexpr uint32_t kV1 = 0xF993FAC8;
constexpr uint32_t kV2 = 0xF993FAC9;
constexpr uint32_t kV3 = 0xF993FACA;
enum Storage : int32_t { kNoStorage = -1, kDense = 0, kRowSparse = 1, kCsr = 2 };
constexpr int32_t kCpu = 1;
constexpr uint64_t kMaxArrays = uint64_t{1} << 20;

// By MXNet's number.
constexpr std::array kDTypes = {
    DType::kFloat32,   DType::kFloat64,   DType::kFloat16, DType::kUInt8, DType::kInt32,
    DType::kInt8,      DType::kInt64,     DType::kBool,    DType::kInt16, DType::kUndefined,
    DType::kUndefined, DType::kUndefined, DType::kBFloat16};
constexpr int32_t kInt64Code = 6;

class Reader {
 public:
  explicit Reader(const BufferRef& file)
      : file_(file), bytes_(static_cast<const char*>(file->data), file->size_bytes) {}

  absl::StatusOr<ArrayList> Run() {
    INTERP_ASSIGN_OR_RETURN(const auto magic, Take<uint64_t>("the magic"));
    INTERP_RETURN_IF_ERROR(Take<uint64_t>("a reserved word").status());
    if (magic != kListMagic) {
      return DataLoss("is no list of arrays: it starts with ", magic, ", expected ", kListMagic);
    }
    ArrayList list;
    INTERP_ASSIGN_OR_RETURN(const auto count, Take<uint64_t>("the number of arrays"));
    // An array that is "none" takes four bytes of the file, but far more of memory.
    if (count > kMaxArrays) {
      return DataLoss("says that it has ", count, " arrays, expected at most ", kMaxArrays);
    }
    for (uint64_t i = 0; i < count; ++i) {
      absl::StatusOr<ListedArray> array = Record();
      if (!array.ok()) return Annotate(array.status(), absl::StrCat("array ", i, " of ", count));
      list.arrays.push_back(*std::move(array));
    }
    INTERP_RETURN_IF_ERROR(Names(list));
    if (at_ != bytes_.size()) {
      return DataLoss("has ", bytes_.size() - at_, " bytes more than its arrays, at offset ", at_);
    }
    return list;
  }

 private:
  absl::Status Need(uint64_t bytes, absl::string_view what) const {
    if (bytes <= bytes_.size() - at_) return absl::OkStatus();
    return DataLoss("ends within ", what, ": ", bytes, " bytes at offset ", at_, " of ",
                    bytes_.size());
  }

  template <typename T>
  absl::StatusOr<T> Take(absl::string_view what) {
    INTERP_RETURN_IF_ERROR(Need(sizeof(T), what));
    T value;
    std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

  // Dims of 32 bits for V0. `none`: the shape says that there is no array.
  template <typename Dim>
  absl::StatusOr<Shape> Dims(int64_t rank) {
    if (rank < 0 || rank > kMaxRank) {
      return Unimplemented("has ", rank, " dims at offset ", at_, "; at most ", kMaxRank,
                           " are possible");
    }
    Shape shape;
    for (int64_t i = 0; i < rank; ++i) {
      INTERP_ASSIGN_OR_RETURN(const Dim dim, Take<Dim>("its dims"));
      shape.push_back(static_cast<int64_t>(dim));
    }
    if (shape.CheckedNumel().has_value()) return shape;
    return DataLoss("has the shape ", ToString(shape), " before offset ", at_);
  }

  absl::StatusOr<Shape> TakeShape() {
    INTERP_ASSIGN_OR_RETURN(const auto rank, Take<int32_t>("its rank"));
    return Dims<int64_t>(rank);
  }

  absl::StatusOr<int32_t> TakeStorage() {
    INTERP_ASSIGN_OR_RETURN(const auto storage, Take<int32_t>("its storage"));
    if (storage == kCsr) {
      return Unimplemented("is stored as compressed sparse rows; save it as dense");
    }
    if (storage != kDense && storage != kRowSparse && storage != kNoStorage) {
      return DataLoss("has the storage ", storage, " before offset ", at_);
    }
    return storage;
  }

  absl::StatusOr<DType> TakeDType() {
    INTERP_ASSIGN_OR_RETURN(const auto code, Take<int32_t>("its dtype"));
    const bool known = code >= 0 && code < std::ssize(kDTypes);
    if (!known || kDTypes[code] == DType::kUndefined) {
      return Unimplemented("has MXNet's dtype ", code, " before offset ", at_);
    }
    return kDTypes[code];
  }

  absl::StatusOr<ListedArray> Record() {
    ListedArray array;
    INTERP_ASSIGN_OR_RETURN(const auto magic, Take<uint32_t>("its magic"));
    int32_t storage = kDense;
    Shape shape;
    if (magic == kV2 || magic == kV3) {
      INTERP_ASSIGN_OR_RETURN(storage, TakeStorage());
      // What rows there are, their numbers tell.
      if (storage == kRowSparse) INTERP_RETURN_IF_ERROR(TakeShape().status());
      INTERP_ASSIGN_OR_RETURN(const auto rank, Take<int32_t>("its rank"));
      if (magic == kV2 ? rank == 0 : rank == -1) return array;
      INTERP_ASSIGN_OR_RETURN(shape, Dims<int64_t>(rank));
    } else if (magic == kV1) {
      INTERP_ASSIGN_OR_RETURN(shape, TakeShape());
      if (shape.rank() == 0) return array;
    } else {
      if (magic > kMaxRank) {
        return DataLoss("starts with ", magic, " before offset ", at_,
                        ", which is no magic and no rank");
      }
      INTERP_ASSIGN_OR_RETURN(shape, Dims<uint32_t>(magic));
      if (magic == 0) return array;
    }
    INTERP_RETURN_IF_ERROR(Take<uint64_t>("its device").status());
    INTERP_ASSIGN_OR_RETURN(const DType dtype, TakeDType());
    ArrayLayout layout{.dtype = dtype, .shape = shape};
    if (storage != kRowSparse) {
      INTERP_ASSIGN_OR_RETURN(array.tensor, Elements(layout));
      return array;
    }
    return Rows(layout);
  }

  absl::StatusOr<ListedArray> Rows(ArrayLayout layout) {
    ListedArray array;
    INTERP_ASSIGN_OR_RETURN(const auto code, Take<int32_t>("the dtype of row numbers"));
    INTERP_ASSIGN_OR_RETURN(const Shape numbers, TakeShape());
    if (code != kInt64Code || numbers.rank() != 1 || layout.shape.rank() == 0) {
      return DataLoss("has row numbers of MXNet's dtype ", code, " and shape ", ToString(numbers),
                      " for ", ToString(layout.shape), " before offset ", at_);
    }
    array.rows.emplace();
    array.rows->height = layout.shape[0];
    layout.shape[0] = numbers[0];
    if (!layout.shape.CheckedNumel().has_value()) {
      return DataLoss("has ", numbers[0], " rows before offset ", at_);
    }
    INTERP_ASSIGN_OR_RETURN(array.tensor, Elements(layout));
    // Checked against the file before memory is taken.
    const auto rows = static_cast<uint64_t>(numbers[0]);
    if (rows > std::numeric_limits<uint64_t>::max() / sizeof(int64_t)) {
      return DataLoss("has ", rows, " rows before offset ", at_);
    }
    INTERP_RETURN_IF_ERROR(Need(rows * sizeof(int64_t), "its row numbers"));
    for (int64_t i = 0; i < numbers[0]; ++i) {
      INTERP_ASSIGN_OR_RETURN(const auto row, Take<int64_t>("its row numbers"));
      if (row < 0 || row >= array.rows->height) {
        return DataLoss("has row ", row, " of ", array.rows->height, " before offset ", at_);
      }
      array.rows->rows.push_back(row);
    }
    return array;
  }

  absl::StatusOr<Tensor> Elements(const ArrayLayout& layout) {
    INTERP_RETURN_IF_ERROR(Need(layout.size_bytes(), "its elements"));
    INTERP_ASSIGN_OR_RETURN(Tensor tensor,
                            ShareElements(layout, file_, static_cast<char*>(file_->data) + at_));
    at_ += layout.size_bytes();
    return tensor;
  }

  absl::Status Names(ArrayList& list) {
    INTERP_ASSIGN_OR_RETURN(const auto count, Take<uint64_t>("the number of names"));
    if (count != 0 && count != list.arrays.size()) {
      return DataLoss("has ", count, " names for ", list.arrays.size(), " arrays");
    }
    list.named = count > 0;
    absl::flat_hash_set<absl::string_view> seen;
    for (uint64_t i = 0; i < count; ++i) {
      INTERP_ASSIGN_OR_RETURN(const auto length, Take<uint64_t>("the length of a name"));
      INTERP_RETURN_IF_ERROR(Need(length, "a name"));
      const absl::string_view name = bytes_.substr(at_, length);
      at_ += length;
      if (!seen.insert(name).second) return DataLoss("has two arrays named '", name, "'");
      list.arrays[i].name = std::string(name);
    }
    return absl::OkStatus();
  }

  const BufferRef& file_;
  const absl::string_view bytes_;
  uint64_t at_ = 0;
};

class Writer {
 public:
  explicit Writer(FileWriter& file) : file_(file) {}

  absl::Status Run(const ArrayList& list) {
    INTERP_RETURN_IF_ERROR(Put<uint64_t>(kListMagic));
    INTERP_RETURN_IF_ERROR(Put<uint64_t>(0));
    INTERP_RETURN_IF_ERROR(Put<uint64_t>(list.arrays.size()));
    for (const ListedArray& array : list.arrays) {
      INTERP_RETURN_IF_ERROR(Annotate(Record(array), absl::StrCat("array '", array.name, "'")));
    }
    INTERP_RETURN_IF_ERROR(Put<uint64_t>(list.named ? list.arrays.size() : 0));
    absl::flat_hash_set<absl::string_view> seen;
    for (const ListedArray& array : list.arrays) {
      if (!list.named) break;
      if (!seen.insert(array.name).second) {
        return InvalidArgument("two arrays are named '", array.name, "'");
      }
      INTERP_RETURN_IF_ERROR(Put<uint64_t>(array.name.size()));
      INTERP_RETURN_IF_ERROR(file_.Append(array.name));
    }
    return absl::OkStatus();
  }

 private:
  template <typename T>
  absl::Status Put(T value) {
    char bytes[sizeof(T)];
    std::memcpy(bytes, &value, sizeof(T));
    return file_.Append({bytes, sizeof(T)});
  }

  absl::Status PutShape(const Shape& shape) {
    INTERP_RETURN_IF_ERROR(Put<int32_t>(shape.rank()));
    for (const int64_t dim : shape) INTERP_RETURN_IF_ERROR(Put<int64_t>(dim));
    return absl::OkStatus();
  }

  absl::Status Record(const ListedArray& array) {
    const Tensor& tensor = array.tensor;
    if (tensor.dtype == DType::kUndefined) {
      INTERP_RETURN_IF_ERROR(Put<uint32_t>(kV2));
      INTERP_RETURN_IF_ERROR(Put<int32_t>(kDense));
      return Put<int32_t>(0);
    }
    INTERP_ASSIGN_OR_RETURN(const int32_t code, CodeOf(tensor.dtype));
    INTERP_RETURN_IF_ERROR(CheckMemory(tensor));
    if (array.rows.has_value()) INTERP_RETURN_IF_ERROR(CheckRows(array));
    // Of rows there may be none.
    const bool classic = array.rows.has_value() || (tensor.shape.rank() > 0 && tensor.numel() > 0);
    INTERP_RETURN_IF_ERROR(Put<uint32_t>(classic ? kV2 : kV3));
    INTERP_RETURN_IF_ERROR(Put<int32_t>(array.rows.has_value() ? kRowSparse : kDense));
    Shape shape = tensor.shape;
    if (array.rows.has_value()) {
      INTERP_RETURN_IF_ERROR(PutShape(shape));
      shape[0] = array.rows->height;
    }
    INTERP_RETURN_IF_ERROR(PutShape(shape));
    INTERP_RETURN_IF_ERROR(Put<int32_t>(kCpu));
    INTERP_RETURN_IF_ERROR(Put<int32_t>(0));
    INTERP_RETURN_IF_ERROR(Put<int32_t>(code));
    if (array.rows.has_value()) {
      INTERP_RETURN_IF_ERROR(Put<int32_t>(kInt64Code));
      INTERP_RETURN_IF_ERROR(PutShape({std::ssize(array.rows->rows)}));
    }
    INTERP_RETURN_IF_ERROR(
        file_.Append({static_cast<const char*>(tensor.raw_data()), tensor.size_bytes()}));
    if (!array.rows.has_value()) return absl::OkStatus();
    return file_.Append({reinterpret_cast<const char*>(array.rows->rows.data()),
                         array.rows->rows.size() * sizeof(int64_t)});
  }

  static absl::StatusOr<int32_t> CodeOf(DType dtype) {
    for (int32_t code = 0; code < std::ssize(kDTypes); ++code) {
      if (kDTypes[code] == dtype) return code;
    }
    return Unimplemented("MXNet has no dtype ", Name(dtype));
  }

  static absl::Status CheckMemory(const Tensor& tensor) {
    if (!tensor.has_memory() && tensor.numel() > 0) {
      return InvalidArgument("a tensor of ", DescribeType(tensor), " has no memory");
    }
    if (tensor.layout == Layout::kPlain && tensor.place().on_host()) return absl::OkStatus();
    return InvalidArgument("a tensor of ", DescribeType(tensor), " is not plain on the host");
  }

  static absl::Status CheckRows(const ListedArray& array) {
    const RowIndex& index = *array.rows;
    const Shape& shape = array.tensor.shape;
    bool fits = shape.rank() > 0 && shape[0] == std::ssize(index.rows);
    for (const int64_t row : index.rows) fits = fits && row >= 0 && row < index.height;
    if (fits) return absl::OkStatus();
    return InvalidArgument("rows of ", DescribeType(array.tensor), " have ", index.rows.size(),
                           " numbers below ", index.height, ", which do not fit");
  }

  FileWriter& file_;
};

}  // namespace

absl::StatusOr<ArrayList> ParseArrayList(const BufferRef& file) { return Reader(file).Run(); }

absl::StatusOr<ArrayList> ReadArrayList(const std::string& path) {
  INTERP_ASSIGN_OR_RETURN(const BufferRef file, MapAsBuffer(path));
  return Annotate(ParseArrayList(file), path);
}

absl::Status WriteArrayList(const std::string& path, const ArrayList& list) {
  INTERP_ASSIGN_OR_RETURN(FileWriter file, FileWriter::Create(path));
  INTERP_RETURN_IF_ERROR(Annotate(Writer(file).Run(list), path));
  return file.Commit();
}

}  // namespace interp
