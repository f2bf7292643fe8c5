"""Every language by one sample: a new one needs its TOML file and a row here.

A sample is a valid text whose function body stands between « and »; `noise` holds brackets only where they count
for nothing, and `placeholder` could stand there as long as the body is not written. Of `outline`, other files are shown
what `defines` names, in this order; `imports` brings the names `brings` into a file.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Sample:
    file: str
    text: str
    noise: str
    placeholder: str
    outline: str
    defines: str
    imports: str
    brings: str

    @property
    def parts(self) -> tuple[str, str, str]:
        prefix, _, rest = self.text.partition("«")
        body, _, suffix = rest.partition("»")
        return prefix, body, suffix


SAMPLES = {
    "python": Sample(
        "a.py",
        "import os\n\n\ndef add(a, b):\n    «c = a + b\n    return str(c)»\n\n\ndef last():\n    pass\n",
        "# ( [\nx = '(' \"[\" '''{\n('''\n",
        'raise NotImplementedError(f"{a}")',
        "class A:\n    def m(self):\n        def inner(): pass\n\n\n@cache\ndef f(b): return b\n",
        "A m f",
        "from a.b import (\n    c,\n    d as e,\n)\nx = imports\nimport f\n",
        "from a b import c d as e f",
    ),
    "javascript": Sample(
        "a.mjs",
        "const a = 1;\n\nfunction add(a, b) {\n  «const c = a + b;\n  return String(c);»\n}\n\nadd(1, 2);\n",
        "// (\n/* [ */ x = '(' + \"[\" + `{\n(`; y = /[(]/g;\n",
        "throw new Error('not implemented');",
        "export function f(a) {\n  return a;\n}\nclass B { m() {} }\nconst g = (x) => x;\n",
        "f B m g",
        "import { a,\n  b } from 'c';\nexport { d } from 'e';\nconst f = require('g');\nexport const h = 1;\n",
        "import a b from c export d e const f require g",
    ),
    "typescript": Sample(
        "a.ts",
        "type N = number;\n\nfunction add(a: N, b: N): string {\n  «const c: N = a + b;\n  return String(c);»\n}\n",
        "// (\n/* [ */ const x: string = '(' + `{\n(`;\n",
        'throw new Error("TODO: add");',
        "export interface I { a: number }\ntype T = string;\nenum E { A }\n"
        "namespace N { export function f(): T; }\nabstract class C {}\n",
        "I T E N f C",
        "import type { A } from 'b';\nlet imports = 1;\n",
        "import type A from b",
    ),
    "tsx": Sample(
        "a.tsx",
        "type P = { a: string };\n\nfunction V(p: P) {\n  «const c = String(p.a);\n  return <b>{String(c)}</b>;»\n}\n",
        "// (\nconst x = '(' + \"[\";\n",
        "throw new NotImplementedError();",
        "export interface P { a: number }\nexport const V = (p: P) => <b>{p.a}</b>;\nfunction f() {}\n",
        "P V f",
        "import { A } from 'b';\nlet imports = 1;\n",
        "import A from b",
    ),
    "go": Sample(
        "a.go",
        'package a\n\nimport "fmt"\n\nfunc Add(a, b int) string {\n\t«c := a + b\n\treturn fmt.Sprint(c)»\n}\n',
        "// (\n/* [ */\nvar x = \"(\" + `{\n\\`\nvar y = '['\n",
        'panic("not yet implemented")',
        "package p\n\ntype S struct{ a int }\n\nvar E = 1\n\nconst (\n\tc = 1\n)\n\n"
        "func (s S) M() int { return 1 }\n\nfunc F() {}\n",
        "S E c M F",
        'import (\n\t"a/b"\n)\nvar imports = 1\n',
        "import a b",
    ),
    "rust": Sample(
        "a.rs",
        "use std::fmt;\n\nfn add<'a>(a: &'a i32, b: i32) -> String {\n    «let c = a + b;\n    c.to_string()»\n}\n",
        "// (\n/* [ */ let x: &'a str = \"(\"; let y = '['; let z = r#\"{\"(\"#; let w = '\\'';\n",
        "todo!()",
        "pub struct S { a: i32 }\nimpl S { fn m(&self) -> i32 { self.a } }\ntrait T { fn n(); }\n"
        "mod o { pub enum E { A } }\nmacro_rules! k { () => {} }\n",
        "S m T n E k",
        "pub use a::{\n    B,\n    C,\n};\nuse d;\nlet uses = 1;\n",
        "pub use a B C d",
    ),
    "java": Sample(
        "A.java",
        "class A {\n    int add(int a, int b) {\n        «int c = a + b;\n        return abs(c);»\n    }\n}\n",
        '// (\n/* [ */ String x = "(" + \'[\' + """\n{ (""";\n',
        "throw new UnsupportedOperationException();",
        "class A { int x; A() {} int m() { return 1; } }\ninterface I { void n(); }\n"
        "record R(int a) {}\nenum E { B; void o() {} }\n",
        "A x A m I n R E o",
        "import a.B;\nint imports = 1;\n",
        "import a B",
    ),
    "c": Sample(
        "a.c",
        "#include <stdio.h>\n\nint add(int a, int b)\n{\n    «int c = a + b;\n    return abs(c);»\n}\n",
        "// (\n/* [ */ char *x = \"(\"; char y = '{';\n",
        'assert(0 && "not implemented");',
        "#ifndef A_H\nstruct s { int a; };\nstruct s *make(struct s of);\nint f(int *a) { return *a; }\n"
        "typedef int t;\n#define TWICE(a) 2 * (a)\n#endif\n",
        "s make f t TWICE",
        "#include <a.h>\nint include = 1;\n",
        "include a h",
    ),
    "cpp": Sample(
        "a.cc",
        "#include <string>\n\nstd::string add(int a, int b) {\n    «auto c = a + b;\n    return to_text(c);»\n}\n",
        "// (\nint n = 1'000'000; auto x = R\"x({ \"( )\" )x\"; char y = '[';\n",
        'throw std::logic_error("implement me");',
        "namespace n { class A { int m() { return 1; } int o(); }; }\n"
        "template <class T> int g(T a) { return 2; }\nusing B = n::A;\n",
        "n A m o g B",
        '#include "a.h"\nusing b::c;\nint usings = 1;\n',
        "include a h using b c",
    ),
}
