"""Names of NumPy and ``numpy.linalg`` that symc has not, each with its reason, which the page and errors say."""

from __future__ import annotations

#: Reasons, and the names that they are of.
REASONS: dict[str, str] = {
    "writes files and text, or reads what is no array of numbers":
        "array2string array_repr array_str base_repr binary_repr format_float_positional format_float_scientific "
        "fromfile fromregex load save savetxt savez savez_compressed",
    "memory is decided when a program is compiled; values have no addresses and no layout":
        "isfortran may_share_memory nested_iters shares_memory",
    "dates and times are no dtypes of symc":
        "busday_count busday_offset datetime_as_string datetime_data is_busday isnat",
    "settings of NumPy's own printing, errors and buffers":
        "get_include get_printoptions getbufsize geterr geterrcall info printoptions set_printoptions setbufsize "
        "seterr seterrcall show_config show_runtime",
    "makes np.matrix, which NumPy advises against; sc.block and sc.atleast_2d": "asmatrix bmat",
    "makes ufuncs on Python objects; sc.op makes an op of a function": "frompyfunc",
    "letters of dtypes; sc.result_type and sc.promote_types": "mintypecode typename",
    "runs NumPy's tests": "test linalg.test",
}
ABSENT: dict[str, str] = {name: reason for reason, names in REASONS.items() for name in names.split()}
